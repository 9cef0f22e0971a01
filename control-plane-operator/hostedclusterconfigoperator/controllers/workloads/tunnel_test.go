// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// tunnelFollowsAddresses checks when the guest has agents of the tunnel, and what they connect to.
func tunnelFollowsAddresses(w *world, step func(string, func(*testing.T))) {
	w.t.Helper()
	publish := func(addresses ...string) {
		hcp := &hyperv1.HostedControlPlane{}
		w.get(namespace, "demo", hcp)
		hcp.Status.TunnelAddresses = addresses
		w.must(w.client.Status().Update(w.t.Context(), hcp))
	}
	missing := func() bool {
		err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: guestNS, Name: "tunnel-agent"}, &appsv1.DaemonSet{})
		return apierrors.IsNotFound(err)
	}
	step("runs agents of the tunnel if the control plane publishes it and the release has them", func(t *testing.T) {
		g := NewWithT(t)
		publish("192.0.2.10:31234", "192.0.2.99:31234")
		g.Expect(w.pass()).To(Succeed())
		g.Expect(missing()).To(BeTrue(), "the release has none")
		withTunnel := release("1.36.4")
		withTunnel["tunnel"] = "registry/tunnel:1.36.4"
		w.r.Releases = withTunnel
		g.Expect(w.pass()).To(Succeed())
		set := &appsv1.DaemonSet{}
		w.get(guestNS, "tunnel-agent", set)
		container := set.Spec.Template.Spec.Containers[0]
		g.Expect(container.Image).To(Equal("registry/tunnel:1.36.4"))
		g.Expect(container.Args).To(ContainElements("--address=192.0.2.10:31234", "--address=192.0.2.99:31234",
			"--server-name=konnectivity-server", "--cluster-network=10.132.0.0/14"))
		g.Expect(set.Spec.Template.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		before := w.writes.Count
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.writes.Count).To(Equal(before))
	})
	step("removes the agents if no address is published any more", func(t *testing.T) {
		g := NewWithT(t)
		publish()
		g.Expect(w.pass()).To(Succeed())
		g.Expect(missing()).To(BeTrue())
		w.r.Releases = release("1.36.4")
	})
}
