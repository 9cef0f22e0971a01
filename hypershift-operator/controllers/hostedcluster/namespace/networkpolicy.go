// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	policyGroupLabel = "network.openshift.io/policy-group"

	defaultAPIPort = 6443
)

// policy is one NetworkPolicy of the hosted namespace.
type policy struct {
	name string
	// app selects pods by their label app; if it is empty, pods selects them. If both are empty, the policy applies to all
	// pods.
	app  string
	pods metav1.LabelSelector
	// from and ports restrict incoming traffic; ports are TCP ports. Empty means no restriction.
	from  []networkingv1.NetworkPolicyPeer
	ports []int32
	// egress lists the allowed outgoing traffic. If it is set, the policy is for outgoing traffic.
	egress []networkingv1.NetworkPolicyEgressRule
	// open admits all incoming traffic in a policy for outgoing traffic.
	open bool
}

// NetworkPolicies isolate the hosted namespace from other namespaces, except for its published services. They also keep
// its pods out of the management cluster's network, because they act on requests of a guest or a tenant.
type NetworkPolicies struct {
	Client client.Client
	// LiveReader bypasses the cache.
	LiveReader client.Reader
	// Able reports whether the control-plane-operator has an ability, which a label of its image names.
	Able func(ctx context.Context, ability string) (bool, error)
	// EgressBlocks are ranges that pods which act for a guest must not reach, in addition to the detected ranges of the
	// management cluster.
	EgressBlocks []netip.Prefix
	// DNS is what pods query for names, besides the DNS of well-known namespaces.
	DNS managementnetwork.DNS
	// RefuseNodes blocks tenants' servers on all ports of the management cluster's nodes.
	RefuseNodes bool
}

// Reconcile writes the policies, and deletes those of previous publishing strategies.
func (r NetworkPolicies) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	network, err := managementnetwork.Read(ctx, r.LiveReader, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	outgoing, err := r.egressPolicies(ctx, s, network)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := append(ingressPolicies(s), outgoing...)
	keep := map[string]bool{}
	failures := []error{r.writeManagementNetwork(ctx, s, network)}
	for _, p := range wanted {
		keep[p.name] = true
		failures = append(failures, r.applyPolicy(ctx, s, p))
	}
	for _, name := range publishingPolicies {
		if !keep[name] {
			failures = append(failures, s.Drop(ctx, r.Client, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}))
		}
	}
	return ctrl.Result{}, errors.Join(failures...)
}

// publishingPolicies depend on how services are published, so they may have to be deleted.
var publishingPolicies = []string{
	"nodeport-ignition", "nodeport-ignition-proxy", "nodeport-konnectivity", "nodeport-konnectivity-kas",
	"loadbalancer-konnectivity-kas", "nodeport-oauth", "loadbalancer-oauth",
}

func ingressPolicies(s *cluster.Scope) []policy {
	inside := inside(s, metav1.LabelSelector{})
	neighbours := []networkingv1.NetworkPolicyPeer{{PodSelector: &inside}}
	all := []policy{
		{name: "openshift-ingress", from: namespacesOf("ingress")},
		{name: "same-namespace", from: neighbours},
		{name: "kas", app: "kube-apiserver", ports: apiPorts(s.HC)},
		{name: "openshift-monitoring", from: namespacesOf("monitoring")},
	}
	if !s.Distribution().OwnOperators {
		// Only monitoring may reach the metrics of this product's etcd, because they are served without a certificate.
		all[1].pods = not("app", "etcd")
		all = append(all, policy{name: "etcd", app: "etcd", from: neighbours, ports: []int32{2379, 2380}})
	}
	for _, service := range s.HC.Spec.Services {
		all = append(all, publishedPolicies(service)...)
	}
	return all
}

// publishedPolicies returns the policies that admit all clients to a published service.
func publishedPolicies(service hyperv1.ServicePublishingStrategyMapping) []policy {
	type published struct {
		service hyperv1.ServiceType
		by      hyperv1.PublishingStrategyType
	}
	return map[published][]policy{
		{hyperv1.Ignition, hyperv1.NodePort}: {
			{name: "nodeport-ignition", app: "ignition-server", ports: []int32{9090}},
			{name: "nodeport-ignition-proxy", app: "ignition-server-proxy", ports: []int32{8443}},
		},
		{hyperv1.Konnectivity, hyperv1.NodePort}: {
			{name: "nodeport-konnectivity", app: "konnectivity-server", ports: []int32{8091}},
			{name: "nodeport-konnectivity-kas", app: "kube-apiserver", ports: []int32{8091}},
		},
		{hyperv1.Konnectivity, hyperv1.LoadBalancer}: {
			{name: "loadbalancer-konnectivity-kas", app: "kube-apiserver", ports: []int32{8091}},
		},
		{hyperv1.OAuthServer, hyperv1.NodePort}:     {{name: "nodeport-oauth", app: "oauth-openshift", ports: []int32{6443}}},
		{hyperv1.OAuthServer, hyperv1.LoadBalancer}: {{name: "loadbalancer-oauth", app: "oauth-openshift", ports: []int32{6443}}},
	}[published{service.Service, service.ServicePublishingStrategy.Type}]
}

func apiPorts(hc *hyperv1.HostedCluster) []int32 {
	ports := []int32{defaultAPIPort}
	if api := hc.Spec.Networking.APIServer; api != nil && ptr.Deref(api.Port, defaultAPIPort) != defaultAPIPort {
		ports = append(ports, *api.Port)
	}
	return ports
}

func namespacesOf(group string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{policyGroupLabel: group}}}}
}

func (r NetworkPolicies) applyPolicy(ctx context.Context, s *cluster.Scope, p policy) error {
	live := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: p.name}}
	_, err := upsert.Object(ctx, r.Client, live, func() error {
		s.Own(live)
		live.Spec = p.spec()
		return nil
	})
	return err
}

func (p policy) spec() networkingv1.NetworkPolicySpec {
	spec := networkingv1.NetworkPolicySpec{PodSelector: p.pods}
	if p.app != "" {
		spec.PodSelector.MatchLabels = map[string]string{"app": p.app}
	}
	if p.egress != nil {
		spec.Egress, spec.PolicyTypes = p.egress, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
		if p.open {
			spec.Ingress, spec.PolicyTypes = []networkingv1.NetworkPolicyIngressRule{{}}, append(spec.PolicyTypes, networkingv1.PolicyTypeIngress)
		}
		return spec
	}
	rule := networkingv1.NetworkPolicyIngressRule{From: p.from}
	for _, port := range p.ports {
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{
			Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port)),
		})
	}
	spec.Ingress, spec.PolicyTypes = []networkingv1.NetworkPolicyIngressRule{rule}, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	return spec
}

// not selects pods whose label key does not have the value.
func not(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}}}
}
