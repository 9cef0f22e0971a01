// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"testing"

	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// tunnelled returns a control plane that publishes Konnectivity.
func tunnelled(strategy hyperv1.ServicePublishingStrategy) *hyperv1.HostedControlPlane {
	hcp := controlPlane(nodePort("192.0.2.10", 0), nodePort("192.0.2.10", 0))
	hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
		Service: hyperv1.Konnectivity, ServicePublishingStrategy: strategy,
	})
	return hcp
}

func TestTunnel(t *testing.T) {
	key := client.ObjectKey{Namespace: namespace, Name: TunnelService}
	t.Run("a node port is known when the management cluster has chosen it", func(t *testing.T) {
		g, hcp := NewWithT(t), tunnelled(nodePort("192.0.2.11", 0))
		r := world(hcp)
		g.Expect(r.Tunnel(t.Context(), hcp)).To(BeEmpty())
		s := &corev1.Service{}
		g.Expect(r.Client.Get(t.Context(), key, s)).To(Succeed())
		g.Expect(s.Spec.Selector).To(Equal(map[string]string{"app": "kube-apiserver"}))
		g.Expect(s.Spec.TrafficDistribution).To(BeNil(), "agents must reach each server")
		s.Spec.Ports[0].NodePort = 31234
		g.Expect(r.Client.Update(t.Context(), s)).To(Succeed())
		g.Expect(r.Tunnel(t.Context(), hcp)).To(Equal([]string{"192.0.2.11:31234"}))
		hcp.Status.ServedAddresses = []hyperv1.ServedAddress{{Type: hyperv1.LoadBalancer, Host: "192.0.2.99", Port: 6443}}
		hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.99", Port: 6443}
		g.Expect(r.Tunnel(t.Context(), hcp)).To(Equal([]string{"192.0.2.11:31234", "192.0.2.99:31234"}),
			"the address of a load balancer moves when a node of the management cluster fails")
	})
	t.Run("a node port of the user is used, also over IPv6", func(t *testing.T) {
		g, hcp := NewWithT(t), tunnelled(nodePort("2001:db8::1", 30091))
		g.Expect(world(hcp).Tunnel(t.Context(), hcp)).To(Equal([]string{"[2001:db8::1]:30091"}))
	})
	t.Run("a load balancer is known when it is provisioned", func(t *testing.T) {
		g, hcp := NewWithT(t), tunnelled(hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer})
		r := world(hcp)
		g.Expect(r.Tunnel(t.Context(), hcp)).To(BeEmpty())
		s := &corev1.Service{}
		g.Expect(r.Client.Get(t.Context(), key, s)).To(Succeed())
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.50"}}
		g.Expect(r.Client.Status().Update(t.Context(), s)).To(Succeed())
		g.Expect(r.Tunnel(t.Context(), hcp)).To(Equal([]string{"192.0.2.50:8091"}))
	})
	t.Run("a Route passes TLS on by its host, and goes when a node port takes its place", func(t *testing.T) {
		g, hcp := NewWithT(t), tunnelled(route("tunnel.example.com"))
		r := world(hcp)
		g.Expect(r.Tunnel(t.Context(), hcp)).To(Equal([]string{"tunnel.example.com:443"}))
		made := &routev1.Route{}
		g.Expect(r.Client.Get(t.Context(), key, made)).To(Succeed())
		g.Expect(made.Spec.Host).To(Equal("tunnel.example.com"))
		g.Expect(made.Spec.TLS.Termination).To(Equal(routev1.TLSTerminationPassthrough))
		g.Expect(metav1.IsControlledBy(made, hcp)).To(BeTrue())
		hcp.Spec.Services[2].ServicePublishingStrategy = nodePort("192.0.2.11", 30091)
		g.Expect(r.Tunnel(t.Context(), hcp)).To(Equal([]string{"192.0.2.11:30091"}))
		g.Expect(client.IgnoreNotFound(r.Client.Get(t.Context(), key, made))).To(Succeed())
		g.Expect(r.Client.Get(t.Context(), key, made)).NotTo(Succeed())
	})
	t.Run("nothing stays if the release has no tunnel, or the strategy is not possible any more", func(t *testing.T) {
		for _, change := range []func(*Reconciler, *hyperv1.HostedControlPlane) error{
			func(r *Reconciler, hcp *hyperv1.HostedControlPlane) error { return r.NoTunnel(t.Context(), hcp) },
			func(r *Reconciler, hcp *hyperv1.HostedControlPlane) error {
				hcp.Spec.Services[2].ServicePublishingStrategy.NodePort.Address = ""
				addresses, err := r.Tunnel(t.Context(), hcp)
				NewWithT(t).Expect(addresses).To(BeEmpty())
				return err
			},
		} {
			g, hcp := NewWithT(t), tunnelled(nodePort("192.0.2.11", 30091))
			r := world(hcp)
			_, err := r.Tunnel(t.Context(), hcp)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(change(r, hcp)).To(Succeed())
			services := &corev1.ServiceList{}
			g.Expect(r.Client.List(t.Context(), services)).To(Succeed())
			g.Expect(services.Items).To(BeEmpty())
		}
	})
	t.Run("nothing is published if this management cluster cannot", func(t *testing.T) {
		for name, hcp := range map[string]*hyperv1.HostedControlPlane{
			"Konnectivity is not listed":     controlPlane(nodePort("192.0.2.10", 0), nodePort("192.0.2.10", 0)),
			"there are no Routes":            tunnelled(route("tunnel.example.com")),
			"the node port has no address":   tunnelled(hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort}),
			"S3 is no way to publish a port": tunnelled(hyperv1.ServicePublishingStrategy{Type: hyperv1.S3}),
		} {
			g, r := NewWithT(t), world(hcp)
			r.HasRoutes = false
			g.Expect(r.Tunnel(t.Context(), hcp)).To(BeEmpty(), name)
			services := &corev1.ServiceList{}
			g.Expect(r.Client.List(t.Context(), services)).To(Succeed())
			g.Expect(services.Items).To(BeEmpty(), name)
		}
	})
}
