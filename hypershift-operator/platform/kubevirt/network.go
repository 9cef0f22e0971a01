// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	policyRights = hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC
	// policyWrites and disconnected are the subjects of calls that write and delete the NetworkPolicy.
	policyWrites, disconnected = "policy writes", "disconnected"
)

// infraTarget returns the location of a cluster's virtual machines.
func infraTarget(cluster platform.Cluster) target {
	return target{hosted: cluster.Namespace, user: cluster.HostedCluster.Namespace, credentials: external(cluster.HostedCluster)}
}

// Connect blocks virtual machines in an external cluster from that cluster's own networks, if its kubeconfig allows
// that. It also summarizes the pools' live migration conditions. In the management cluster, the policies of the hosted
// control plane namespace block those networks.
func (p *Platform) Connect(ctx context.Context, c client.Client, cluster platform.Cluster) (platform.Connection, error) {
	connection, err := migratable(ctx, c, cluster.HostedCluster)
	if err != nil {
		return connection, err
	}
	at := infraTarget(cluster)
	if at.credentials == nil {
		connection.Gone = append(connection.Gone, policyRights)
		return connection, nil
	}
	kept, again, err := p.keepPolicy(ctx, c, at, cluster.HostedCluster)
	connection.Conditions, connection.CheckAgain = append(connection.Conditions, kept), again
	return connection, err
}

// migratable summarizes whether the virtual machines of all pools support live migration, according to the pools'
// conditions.
func migratable(ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster) (platform.Connection, error) {
	pools := &hyperv1.NodePoolList{}
	if err := c.List(ctx, pools, client.InNamespace(hc.Namespace)); err != nil {
		return platform.Connection{}, fmt.Errorf("listing NodePools: %w", err)
	}
	var told bool
	var wrong []string
	for _, pool := range pools.Items {
		for _, said := range pool.Status.Conditions {
			if pool.Spec.ClusterName != hc.Name || said.Type != hyperv1.NodePoolKubeVirtLiveMigratableType {
				continue
			}
			told = true
			if said.Status == corev1.ConditionFalse {
				wrong = append(wrong, fmt.Sprintf("NodePool %s: %s", pool.Name, said.Message))
			}
		}
	}
	slices.Sort(wrong)
	conditionType := string(hyperv1.KubeVirtNodesLiveMigratable)
	switch {
	case !told:
		return platform.Connection{Gone: []hyperv1.ConditionType{hyperv1.KubeVirtNodesLiveMigratable}}, nil
	case len(wrong) > 0:
		return platform.Connection{Conditions: []metav1.Condition{condition.False(conditionType, hyperv1.KubeVirtNodesNotLiveMigratableReason,
			condition.Shorten(strings.Join(wrong, "\n"), mostMachines))}}, nil
	}
	return platform.Connection{Conditions: []metav1.Condition{condition.True(conditionType, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)}}, nil
}

// keepPolicy writes the NetworkPolicy, and reports in a condition which right the kubeconfig lacks. Virtual machines
// run without the policy too.
func (p *Platform) keepPolicy(ctx context.Context, c client.Client, at target, hc *hyperv1.HostedCluster) (metav1.Condition, time.Duration, error) {
	about := fmt.Sprintf("policy/%d", hc.Generation)
	if last, fresh := p.infra.recall(at, about); fresh {
		return last.(metav1.Condition), goodFor, nil
	}
	p.infra.forget(at.hosted, disconnected)
	said := condition.True(string(policyRights), hyperv1.AsExpectedReason, "A NetworkPolicy keeps virtual machines off the networks of their cluster")
	err := p.infra.use(ctx, c, at, policyWrites, func(ctx context.Context, where place) error {
		blocked, err := ownNetworks(ctx, where)
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return err
		}
		if err != nil {
			said = condition.False(string(policyRights), hyperv1.InfraClusterNetworkReadFailedReason, "The NetworkPolicy of virtual machines leaves out which networks are "+
				"their cluster's own, since networks.config.openshift.io cannot be read there: on OpenShift, grant the user of the kubeconfig get by a ClusterRole")
		}
		policy := launcherPolicy(hc, where.namespace)
		_, err = upsert.Object(ctx, where, policy, func() error {
			policy.Labels = map[string]string{hyperv1.InfraIDLabel: hc.Spec.InfraID}
			policy.Spec = launcherRules(hc, blocked)
			return tenancy.Claim(policy, client.ObjectKeyFromObject(hc))
		})
		return err
	})
	var failure *infraError
	switch {
	case err == nil:
		p.infra.remember(at, about, said)
		return said, goodFor, nil
	case errors.As(err, &failure):
		reason := failure.reason
		if reason == reasonForbidden {
			reason = hyperv1.InfraClusterNetworkPolicyCreateFailedReason
		}
		return condition.False(string(policyRights), reason, "No NetworkPolicy keeps virtual machines off the networks of their cluster: "+failure.Error()),
			cmp.Or(failure.again, lastWait), nil
	case apierrors.IsNotFound(err):
		return condition.False(string(policyRights), hyperv1.InfraClusterNetworkPolicyCreateFailedReason, fmt.Sprintf(
			"The cluster for virtual machines has no namespace %s: create it", at.credentials.InfraNamespace)), lastWait, nil
	}
	return condition.Unknown(string(policyRights), hyperv1.ReconciliationErrorReason, err.Error()), 0, err
}

// ownNetworks returns the networks of pods and Services of an OpenShift cluster. Other distributions do not publish
// them.
func ownNetworks(ctx context.Context, where place) ([]netip.Prefix, error) {
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(networks)
	if err := where.Get(ctx, client.ObjectKey{Name: "cluster"}, network); err != nil {
		return nil, err
	}
	texts, _, _ := unstructured.NestedStringSlice(network.Object, "spec", "serviceNetwork")
	pods, _, _ := unstructured.NestedSlice(network.Object, "spec", "clusterNetwork")
	for _, entry := range pods {
		if fields, ok := entry.(map[string]any); ok {
			cidr, _ := fields["cidr"].(string)
			texts = append(texts, cidr)
		}
	}
	var prefixes []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, prefix.Masked())
		}
	}
	return prefixes, nil
}

// launcherPolicy returns the policy, named after the cluster, because several clusters may share a namespace for
// virtual machines.
func launcherPolicy(hc *hyperv1.HostedCluster, namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "virt-launcher-" + hc.Spec.InfraID}}
}

// launcherRules allows all ingress. It allows egress to the cluster's virtual machines, DNS, ingress, the published
// services, and addresses outside the external cluster.
func launcherRules(hc *hyperv1.HostedCluster, blocked []netip.Prefix) networkingv1.NetworkPolicySpec {
	machines := metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.InfraIDLabel: hc.Spec.InfraID, "kubevirt.io": "virt-launcher"}}
	v4, v6 := &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}, &networkingv1.IPBlock{CIDR: "::/0"}
	for _, prefix := range blocked {
		block := v6
		if prefix.Addr().Is4() {
			block = v4
		}
		block.Except = append(block.Except, prefix.String())
	}
	in := networkingv1.NetworkPolicyIngressRule{}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		in.Ports = append(in.Ports, networkingv1.NetworkPolicyPort{Protocol: &protocol})
	}
	pods := func(namespace, of string, labels ...string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labels[0]: labels[1]}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{of: namespace}}}
	}
	out := []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{
		{IPBlock: v4}, {IPBlock: v6}, {PodSelector: &machines},
		pods("openshift-dns", corev1.LabelMetadataName, "dns.operator.openshift.io/daemonset-dns", "default"),
		pods("openshift-ingress", "name", "ingresscontroller.operator.openshift.io/deployment-ingresscontroller", "default"),
	}}}
	for _, address := range nodeAddresses(hc) {
		cidr := netip.PrefixFrom(address, address.BitLen()).String()
		out = append(out, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}}})
	}
	return networkingv1.NetworkPolicySpec{
		PodSelector: machines, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{in}, Egress: out,
	}
}

// nodeAddresses returns the addresses at which services are published by node ports, without duplicates.
func nodeAddresses(hc *hyperv1.HostedCluster) []netip.Addr {
	var addresses []netip.Addr
	for _, service := range hc.Spec.Services {
		published := service.ServicePublishingStrategy.NodePort
		if published == nil {
			continue
		}
		if address, err := netip.ParseAddr(published.Address); err == nil && !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Disconnect deletes the policy. It waits for a cluster that may respond again, but not if the user has deleted the
// kubeconfig.
func (p *Platform) Disconnect(ctx context.Context, c client.Client, cluster platform.Cluster) (string, error) {
	at := infraTarget(cluster)
	if at.credentials == nil {
		return "", nil
	}
	if _, done := p.infra.recall(at, disconnected); done {
		return "", nil
	}
	policy := launcherPolicy(cluster.HostedCluster, at.credentials.InfraNamespace)
	err := p.infra.use(ctx, c, at, disconnected, func(ctx context.Context, where place) error {
		return tenancy.Gone(ctx, where, client.ObjectKeyFromObject(cluster.HostedCluster), policy)
	})
	var failure *infraError
	switch {
	case !errors.As(err, &failure):
		if err == nil {
			p.infra.forget(at.hosted)
			p.infra.remember(at, disconnected, true)
		}
		return "", err
	case failure.reason == reasonForbidden:
		return "", nil // The kubeconfig has no right to the policy, so none was created.
	}
	if gone, err := at.abandoned(ctx, c); err != nil || gone {
		return "", err
	}
	return fmt.Sprintf("Waiting to delete NetworkPolicy %s/%s of virtual machines: %v; delete Secret %s/%s to leave it behind",
		policy.Namespace, policy.Name, failure, at.user, at.credentials.InfraKubeConfigSecret.Name), nil
}

// abandoned reports whether the user has removed the kubeconfig, so that the deletion must not wait for the cluster.
func (at target) abandoned(ctx context.Context, c client.Reader) (bool, error) {
	ref := at.credentials.InfraKubeConfigSecret
	if ref == nil {
		return true, nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: at.user, Name: ref.Name}, &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}
