// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestNodePortsStay(t *testing.T) {
	const address = "172.30.240.1"
	ports := func(s *scope, hcp *hyperv1.HostedControlPlane) map[hyperv1.ServiceType]int32 {
		NewWithT(t).Expect(s.shapeControlPlane(hcp)).To(Succeed())
		all := map[hyperv1.ServiceType]int32{}
		for _, service := range hcp.Spec.Services {
			if port := service.ServicePublishingStrategy.NodePort.Port; port != 0 {
				all[service.Service] = port
			}
		}
		return all
	}
	published := func(s *scope) {
		s.hc.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: address, Port: 30878}
		s.hc.Status.IgnitionEndpoint = address + ":31777"
	}
	known := map[hyperv1.ServiceType]int32{hyperv1.APIServer: 30878, hyperv1.Ignition: 31777}

	t.Run("When nothing is published yet it should leave the choice to the management cluster", func(t *testing.T) {
		NewWithT(t).Expect(ports(withScope(), &hyperv1.HostedControlPlane{})).To(BeEmpty())
	})
	t.Run("When ports are known it should ask for them, also for a control plane that is made anew", func(t *testing.T) {
		NewWithT(t).Expect(ports(withScope(published), &hyperv1.HostedControlPlane{})).To(Equal(known))
	})
	t.Run("When a Service is gone and with it what status tells it should still know its port", func(t *testing.T) {
		g, hcp := NewWithT(t), &hyperv1.HostedControlPlane{}
		ports(withScope(published), hcp)
		g.Expect(ports(withScope(), hcp)).To(Equal(known))
	})
	t.Run("When the user names a port it should be that one", func(t *testing.T) {
		s := withScope(published)
		s.hc.Spec.Services[0].ServicePublishingStrategy.NodePort.Port = 30443
		NewWithT(t).Expect(ports(s, &hyperv1.HostedControlPlane{})).To(HaveKeyWithValue(hyperv1.APIServer, int32(30443)))
	})
	t.Run("When status tells of another address, as of a load balancer before, it should not take its port", func(t *testing.T) {
		s := withScope(published)
		s.hc.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443}
		NewWithT(t).Expect(ports(s, &hyperv1.HostedControlPlane{})).NotTo(HaveKey(hyperv1.APIServer))
	})
	t.Run("When ports are kept the user's own spec should not change", func(t *testing.T) {
		s := withScope(published)
		ports(s, &hyperv1.HostedControlPlane{})
		NewWithT(t).Expect(s.hc.Spec.Services[0].ServicePublishingStrategy.NodePort.Port).To(BeZero())
	})
}
