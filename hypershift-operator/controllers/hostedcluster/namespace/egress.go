// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/upsert"
)

// labelsManagers is the label of a control-plane-operator that labels the pods that need the management API.
const labelsManagers = "io.openshift.hypershift.control-plane-operator-applies-management-kas-network-policy-label"

// linkLocal holds the link-local networks, which include cloud metadata services.
var linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}

// nodeLocalDNS is the conventional address of a DNS cache on every node. It is allowed also where the operator's pod does not
// use it.
const nodeLocalDNS = "169.254.20.10/32"

// egressPolicies returns the policies that limit the outgoing traffic of pods. Managers belong to this product and have
// rights in the management cluster: they reach its API, registries and MAAS. All other pods act on behalf of the guest.
// They reach the control plane and, if they need nodes or the internet, addresses outside the management cluster.
func (r NetworkPolicies) egressPolicies(ctx context.Context, s *cluster.Scope, network *managementnetwork.Addresses) ([]policy, error) {
	labelled, err := r.Able(ctx, labelsManagers)
	if err != nil {
		return nil, err
	}
	everybody := slices.Concat(linkLocal, network.Pods)
	guarded := slices.Concat(everybody, hosts(network.API), r.EgressBlocks)
	managers, others := inside(s, managerPods(labelled)), inside(s, outgoingPods(s, labelled))
	all := []policy{
		{name: "egress-own", pods: inside(s, metav1.LabelSelector{}), egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}, r.dns()}},
		{name: "egress-outside", pods: others, egress: []networkingv1.NetworkPolicyEgressRule{allBut(guarded)}},
		{name: "egress-managers", pods: managers, egress: append([]networkingv1.NetworkPolicyEgressRule{allBut(everybody)}, managementAPI(network.API)...)},
	}
	return append(all, machinePolicies(s, r.dns(), allBut(guarded))...), nil
}

// managerPods selects the managers. If an older control-plane-operator does not label them, it selects all pods. That
// is harmless, because the management cluster's API rejects pods without rights.
func managerPods(labelled bool) metav1.LabelSelector {
	if !labelled {
		return metav1.LabelSelector{}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.NeedManagementKASAccessLabel: "true"}}
}

// outgoingPods selects pods without rights in the management cluster that need outside access. In a Kubernetes control
// plane only the API server does, which calls kubelets, webhooks and token issuers. The components of an OpenShift
// control plane are known only to its operator.
func outgoingPods(s *cluster.Scope, labelled bool) metav1.LabelSelector {
	if !s.Distribution().OwnOperators {
		return metav1.LabelSelector{MatchLabels: map[string]string{"app": "kube-apiserver"}}
	}
	if !labelled {
		return metav1.LabelSelector{}
	}
	return not(hyperv1.NeedManagementKASAccessLabel, "true")
}

// dns lets pods query the cluster's DNS. On OpenShift it listens on a different port behind its Service.
func (r NetworkPolicies) dns() networkingv1.NetworkPolicyEgressRule {
	var ports []networkingv1.NetworkPolicyPort
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		for _, port := range []int32{53, 5353} {
			ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(port))})
		}
	}
	namespaces := []string{"kube-system", "openshift-dns"}
	for _, namespace := range r.DNS.Namespaces {
		if !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	to := []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces,
		}}}},
		{IPBlock: &networkingv1.IPBlock{CIDR: nodeLocalDNS}},
	}
	for _, server := range r.DNS.Servers {
		if cidr := server.String(); cidr != nodeLocalDNS {
			to = append(to, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
		}
	}
	return networkingv1.NetworkPolicyEgressRule{Ports: ports, To: to}
}

// allBut allows all addresses except some ranges.
func allBut(except []netip.Prefix) networkingv1.NetworkPolicyEgressRule {
	v4, v6 := &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}, &networkingv1.IPBlock{CIDR: "::/0"}
	for _, prefix := range except {
		block := v6
		if prefix.Addr().Is4() {
			block = v4
		}
		if cidr := prefix.Masked().String(); !slices.Contains(block.Except, cidr) {
			block.Except = append(block.Except, cidr)
		}
	}
	slices.Sort(v4.Except)
	slices.Sort(v6.Except)
	return networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: v4}, {IPBlock: v6}}}
}

// hosts returns the addresses without their ports.
func hosts(api []netip.AddrPort) []netip.Prefix {
	var all []netip.Prefix
	for _, at := range api {
		all = append(all, netip.PrefixFrom(at.Addr(), at.Addr().BitLen()))
	}
	return all
}

// managementAPI allows access to the management cluster's API server, through the Service and directly.
func managementAPI(api []netip.AddrPort) []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	for i, host := range hosts(api) {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: host.String()}}},
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(int32(api[i].Port())))}},
		})
	}
	return rules
}

// writeManagementNetwork passes the addresses of the management cluster to the programs of the hosted namespace
// that connect to servers of a tenant's choice.
func (r NetworkPolicies) writeManagementNetwork(ctx context.Context, s *cluster.Scope, network *managementnetwork.Addresses) error {
	network.WholeNodes = r.RefuseNodes
	live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: managementnetwork.ConfigMap}}
	_, err := upsert.Object(ctx, r.Client, live, func() error {
		s.Own(live)
		hosted.MarkOperatorObject(live)
		metav1.SetMetaDataAnnotation(&live.ObjectMeta, component.ReloadedAnnotation, "true")
		return managementnetwork.Write(network, live)
	})
	return err
}
