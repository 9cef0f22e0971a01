// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/node-network/host"
)

// announced returns a node on which Flannel runs.
func announced(n *corev1.Node) *corev1.Node {
	n.Annotations = map[string]string{flannelAnnotation: "vxlan"}
	return n
}

func TestReconcileWithFlannel(t *testing.T) {
	own := func() *corev1.Node { return node("a", []string{"10.0.1.0/24"}, "192.0.2.1") }
	without := func() *corev1.Node { return node("b", []string{"10.0.2.0/24"}, "192.0.2.2") }
	agent := func(m *machine) *Agent {
		a := m.agent()
		a.Flannel = true
		return a
	}

	t.Run("writes routes to nodes without Flannel only, and keeps routes that Flannel will replace", func(t *testing.T) {
		g := NewWithT(t)
		kept, left := route("10.0.3.0/24", "192.0.2.3"), route("10.0.5.0/24", "192.0.2.5")
		m := &machine{routes: []host.Route{kept, left}}
		with := announced(node("c", []string{"10.0.3.0/24"}, "192.0.2.3"))
		later := announced(node("d", []string{"10.0.4.0/24"}, "198.51.100.4"))
		g.Expect(agent(m).reconcile(lister(t, announced(own()), without(), with, later))).To(Succeed())
		g.Expect(m.routes).To(ConsistOf(kept, route("10.0.2.0/24", "192.0.2.2")))
	})
	t.Run("leaves room for the headers of VXLAN over IPv4", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		g.Expect(agent(m).reconcile(lister(t, announced(own())))).To(Succeed())
		g.Expect(m.config.MTU).To(Equal(1450))
	})
	t.Run("leaves room for the headers of VXLAN over IPv6", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		both := announced(node("a", []string{"10.0.1.0/24", "fd00:1::/64"}, "192.0.2.1", "2001:db8::1"))
		g.Expect(agent(m).reconcile(lister(t, both))).To(Succeed())
		g.Expect(m.config.MTU).To(Equal(1330))
	})
	t.Run("writes no CNI configuration before Flannel has announced the node", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		g.Expect(agent(m).reconcile(lister(t, own(), without()))).To(MatchError(ContainSubstring("container flannel")))
		g.Expect(m.config).To(BeNil())
		g.Expect(m.routes).To(HaveLen(1))
	})
	t.Run("reconciles when Flannel announces another node", func(t *testing.T) {
		g := NewWithT(t)
		before, err := trim(without())
		g.Expect(err).NotTo(HaveOccurred())
		after, err := trim(announced(without()))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same(before, after)).To(BeFalse())
		g.Expect(same(after, after)).To(BeTrue())
	})
}
