// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/node-network/host"
)

type overlay struct {
	mtu int
	err error
}

func (o overlay) MTU() (int, error) { return o.mtu, o.err }

// inFlannel returns a node on which Flannel runs.
func inFlannel(n *corev1.Node) *corev1.Node {
	n.Annotations = map[string]string{overlayAnnotation: "vxlan"}
	return n
}

func TestReconcileWithOverlay(t *testing.T) {
	own := func() *corev1.Node { return inFlannel(node("a", []string{"10.0.1.0/24"}, "192.0.2.1")) }
	before := func() *corev1.Node { return node("b", []string{"10.0.2.0/24"}, "192.0.2.2") }

	t.Run("keeps routes to nodes without the overlay, and removes those to nodes with it", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{routes: []host.Route{route("10.0.3.0/24", "192.0.2.3")}}
		a := m.agent()
		a.Overlay = overlay{mtu: 1450}
		later := inFlannel(node("c", []string{"10.0.3.0/24"}, "192.0.2.3"))
		g.Expect(a.reconcile(lister(t, own(), before(), later))).To(Succeed())
		g.Expect(m.routes).To(Equal([]host.Route{route("10.0.2.0/24", "192.0.2.2")}))
		g.Expect(m.config.MTU).To(Equal(1450))
	})
	t.Run("writes no CNI configuration before the overlay runs, and keeps routes", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		a := m.agent()
		a.Overlay = overlay{err: errors.New("not yet")}
		g.Expect(a.reconcile(lister(t, own(), before()))).To(MatchError("not yet"))
		g.Expect(m.config).To(BeNil())
		g.Expect(m.routes).To(HaveLen(1))
	})
	t.Run("reconciles when the overlay starts on another node, and keeps its annotation in the cache", func(t *testing.T) {
		g := NewWithT(t)
		trimmed, err := trim(inFlannel(before()))
		g.Expect(err).NotTo(HaveOccurred())
		earlier, err := trim(before())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same(earlier, trimmed)).To(BeFalse())
		g.Expect(same(trimmed, trimmed)).To(BeTrue())
	})
}
