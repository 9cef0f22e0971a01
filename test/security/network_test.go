// SPDX-License-Identifier: Apache-2.0

package security

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// reaches reports whether the egress policies of the hosted namespace allow a pod to send to an address outside all
// pods, on a port.
func (o *operator) reaches(pod map[string]string, to string, port int32) bool {
	o.t.Helper()
	policies := &networkingv1.NetworkPolicyList{}
	o.Expect(o.client.List(o.t.Context(), policies, client.InNamespace(o.hosted()))).To(Succeed())
	isolated := false
	for _, policy := range policies.Items {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		o.Expect(err).NotTo(HaveOccurred())
		if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || !selector.Matches(labels.Set(pod)) {
			continue
		}
		isolated = true
		for _, rule := range policy.Spec.Egress {
			if slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool { return holds(peer.IPBlock, to) }) && listens(rule.Ports, port) {
				return true
			}
		}
	}
	return !isolated
}

func holds(block *networkingv1.IPBlock, address string) bool {
	in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(address)) }
	return block != nil && in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}

func listens(ports []networkingv1.NetworkPolicyPort, port int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == port })
}

// api returns the address and port of the management cluster's API server.
func (o *operator) api() (address string, port int32) {
	o.t.Helper()
	service := &corev1.Service{}
	o.Expect(o.client.Get(o.t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, service)).To(Succeed())
	return service.Spec.ClusterIP, service.Spec.Ports[0].Port
}

func TestNetworkOfAHostedNamespace(t *testing.T) {
	o := newOperator(t, "network")
	o.clusters.Settings.EgressBlocks = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "management"}, Spec: corev1.NodeSpec{PodCIDR: "10.200.0.0/24", PodCIDRs: []string{"10.200.0.0/24"}}}
	o.Expect(o.client.Create(t.Context(), node)).To(Succeed())
	fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), fixture.HostedCluster(o.tenant))...)
	cluster, _ := o.pass()
	o.Expect(cluster).NotTo(HaveOccurred())
	api, apiPort := o.api()

	const (
		worker, pod, metadata, blocked = "192.0.2.7", "10.200.0.9", "169.254.169.254", "203.0.113.9"
		other                          = int32(443)
	)
	for name, template := range o.pods() {
		manager := template.Labels[hyperv1.NeedManagementKASAccessLabel] == "true"
		t.Run("When "+name+" calls, it should reach what it needs and no more", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(o.reaches(template.Labels, metadata, 80)).To(BeFalse(), "a metadata service")
			g.Expect(o.reaches(template.Labels, pod, 9000)).To(BeFalse(), "a pod of the management cluster")
			g.Expect(o.reaches(template.Labels, api, apiPort)).To(Equal(manager), "the management API")
			g.Expect(o.reaches(template.Labels, blocked, other)).To(Equal(manager), "what the administrator blocks for guests")
			g.Expect(o.reaches(template.Labels, worker, 10250)).To(Equal(manager || name == "kube-apiserver"), "a worker")
		})
	}
}
