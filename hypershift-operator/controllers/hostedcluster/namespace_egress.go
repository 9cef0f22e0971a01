// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// labelsManagers is the label of a control-plane-operator that labels the pods that need the management API.
const labelsManagers = "io.openshift.hypershift.control-plane-operator-applies-management-kas-network-policy-label"

// linkLocal holds the link-local networks, which include cloud metadata services.
var linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}

// nodeLocalDNS is the conventional address of a DNS cache on every node.
const nodeLocalDNS = "169.254.20.10/32"

// managementNetwork holds the detected parts of the management cluster's network.
type managementNetwork struct {
	// api allows access to its API server, through the Service and directly.
	api []networkingv1.NetworkPolicyEgressRule
	// apiHosts are the API server's addresses; pods are the pod networks of the nodes.
	apiHosts, pods []netip.Prefix
}

// egressPolicies returns what pods may reach. Managers belong to this product and have rights in the management
// cluster: they reach its API, registries and MAAS. All other pods act on behalf of the guest. They reach the control
// plane and, if they need nodes or the internet, addresses outside the management cluster.
func (r *Reconciler) egressPolicies(ctx context.Context, s *scope) ([]policy, error) {
	network, err := r.managementNetwork(ctx)
	if err != nil {
		return nil, err
	}
	labelled, err := r.operatorIsAble(ctx, s, labelsManagers)
	if err != nil {
		return nil, err
	}
	everybody := slices.Concat(linkLocal, network.pods)
	guarded := slices.Concat(everybody, network.apiHosts, r.Settings.EgressBlocks)
	managers, others := s.inside(managerPods(labelled)), s.inside(s.outgoingPods(labelled))
	all := []policy{
		{name: "egress-own", pods: s.inside(metav1.LabelSelector{}), egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}, dns()}},
		{name: "egress-outside", pods: others, egress: []networkingv1.NetworkPolicyEgressRule{allBut(guarded)}},
		{name: "egress-managers", pods: managers, egress: append([]networkingv1.NetworkPolicyEgressRule{allBut(everybody)}, network.api...)},
	}
	return append(all, s.machinePolicies(allBut(guarded))...), nil
}

// managerPods selects the managers. It selects all pods if an older control-plane-operator does not label them: a pod
// without rights in the management cluster gets nothing from its API anyway.
func managerPods(labelled bool) metav1.LabelSelector {
	if !labelled {
		return metav1.LabelSelector{}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.NeedManagementKASAccessLabel: "true"}}
}

// outgoingPods selects pods without rights in the management cluster that need outside access. In a Kubernetes control
// plane only the API server does, which calls kubelets, webhooks and token issuers. The components of an OpenShift
// control plane are known only to its operator.
func (s *scope) outgoingPods(labelled bool) metav1.LabelSelector {
	if !s.distribution().OwnOperators {
		return metav1.LabelSelector{MatchLabels: map[string]string{"app": "kube-apiserver"}}
	}
	if !labelled {
		return metav1.LabelSelector{}
	}
	return not(hyperv1.NeedManagementKASAccessLabel, "true")
}

// dns lets pods query the cluster's DNS. On OpenShift it listens on another port behind its Service.
func dns() networkingv1.NetworkPolicyEgressRule {
	var ports []networkingv1.NetworkPolicyPort
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		for _, port := range []int32{53, 5353} {
			ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(port))})
		}
	}
	return networkingv1.NetworkPolicyEgressRule{Ports: ports, To: []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{"kube-system", "openshift-dns"},
		}}}},
		{IPBlock: &networkingv1.IPBlock{CIDR: nodeLocalDNS}},
	}}
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

// managementNetwork bypasses the cache for endpoints, because it needs only one of all EndpointSlices.
func (r *Reconciler) managementNetwork(ctx context.Context) (*managementNetwork, error) {
	network := &managementNetwork{}
	slice, service := &discoveryv1.EndpointSlice{}, &corev1.Service{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
	for _, obj := range []client.Object{slice, service} {
		if err := r.LiveReader.Get(ctx, key, obj); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("finding out where the management cluster's API server is: %w", err)
		}
	}
	for _, endpoint := range slice.Endpoints {
		for _, port := range slice.Ports {
			network.addAPI(endpoint.Addresses, ptr.Deref(port.Port, 0))
		}
	}
	for _, port := range service.Spec.Ports {
		network.addAPI(service.Spec.ClusterIPs, port.Port)
	}
	nodes := &corev1.NodeList{}
	if err := r.Client.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing the management cluster's nodes for their pod networks: %w", err)
	}
	for i := range nodes.Items {
		for _, cidr := range nodes.Items[i].Spec.PodCIDRs {
			if prefix, err := netip.ParsePrefix(cidr); err == nil {
				network.pods = append(network.pods, prefix)
			}
		}
	}
	return network, nil
}

func (n *managementNetwork) addAPI(addresses []string, port int32) {
	for _, address := range addresses {
		addr, err := netip.ParseAddr(address)
		if err != nil {
			continue // The cluster IP of a headless Service is None.
		}
		host := netip.PrefixFrom(addr, addr.BitLen())
		n.apiHosts = append(n.apiHosts, host)
		n.api = append(n.api, networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: host.String()}}},
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))}},
		})
	}
}
