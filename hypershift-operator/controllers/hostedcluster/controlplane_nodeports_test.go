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
		s.HC.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: address, Port: 30878}
		s.HC.Status.IgnitionEndpoint = address + ":31777"
	}
	known := map[hyperv1.ServiceType]int32{hyperv1.APIServer: 30878, hyperv1.Ignition: 31777}

	t.Run("When nothing is published yet, it should leave the choice of the port to the management cluster", func(t *testing.T) {
		NewWithT(t).Expect(ports(withScope(), &hyperv1.HostedControlPlane{})).To(BeEmpty())
	})
	t.Run("When the node ports are known, it should request them, even for a recreated control plane", func(t *testing.T) {
		NewWithT(t).Expect(ports(withScope(published), &hyperv1.HostedControlPlane{})).To(Equal(known))
	})
	t.Run("When a Service and its port in status are gone, it should still know the port", func(t *testing.T) {
		g, hcp := NewWithT(t), &hyperv1.HostedControlPlane{}
		ports(withScope(published), hcp)
		g.Expect(ports(withScope(), hcp)).To(Equal(known))
	})
	t.Run("When the user sets a port, it should use that port", func(t *testing.T) {
		s := withScope(published)
		s.HC.Spec.Services[0].ServicePublishingStrategy.NodePort.Port = 30443
		NewWithT(t).Expect(ports(s, &hyperv1.HostedControlPlane{})).To(HaveKeyWithValue(hyperv1.APIServer, int32(30443)))
	})
	t.Run("When status has another address, such as a load balancer's, it should not use the port in it", func(t *testing.T) {
		s := withScope(published)
		s.HC.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443}
		NewWithT(t).Expect(ports(s, &hyperv1.HostedControlPlane{})).NotTo(HaveKey(hyperv1.APIServer))
	})
	t.Run("When node ports are kept, the HostedCluster spec should not change", func(t *testing.T) {
		s := withScope(published)
		ports(s, &hyperv1.HostedControlPlane{})
		NewWithT(t).Expect(s.HC.Spec.Services[0].ServicePublishingStrategy.NodePort.Port).To(BeZero())
	})
}

func TestPublishedPort(t *testing.T) {
	status := func(host, ignition string) hyperv1.HostedClusterStatus {
		return hyperv1.HostedClusterStatus{ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: host, Port: 30878}, IgnitionEndpoint: ignition}
	}
	for name, tc := range map[string]struct {
		service hyperv1.ServiceType
		status  hyperv1.HostedClusterStatus
		want    int32
	}{
		"the API server is published at the address":          {hyperv1.APIServer, status("a", "b:1"), 30878},
		"the API server is published at another address":      {hyperv1.APIServer, status("b", "a:1"), 0},
		"the ignition-server is published at the address":     {hyperv1.Ignition, status("b", "a:31777"), 31777},
		"the ignition-server is published at another address": {hyperv1.Ignition, status("a", "b:31777"), 0},
		"the ignition-server has no port":                     {hyperv1.Ignition, status("a", "a"), 0},
		"the port of the ignition-server is a name":           {hyperv1.Ignition, status("a", "a:https"), 0},
		"a port is out of range":                              {hyperv1.Ignition, status("a", "a:2147483648"), 0},
		"the status has no port of the service":               {hyperv1.Konnectivity, status("a", "a:31777"), 0},
	} {
		t.Run("When "+name+", it should return only a port that belongs to the service and address", func(t *testing.T) {
			NewWithT(t).Expect(publishedPort(tc.service, "a", tc.status)).To(Equal(tc.want))
		})
	}
}

func TestPortOf(t *testing.T) {
	const port = 30001
	byNodePort := func(service hyperv1.ServiceType, port int32) hyperv1.ServicePublishingStrategyMapping {
		return hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "a", Port: port}}}
	}
	as := func(kind hyperv1.PublishingStrategyType, strategy *hyperv1.NodePortPublishingStrategy) hyperv1.ServicePublishingStrategyMapping {
		return hyperv1.ServicePublishingStrategyMapping{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: kind, NodePort: strategy}}
	}
	given := &hyperv1.NodePortPublishingStrategy{Port: port}
	for name, tc := range map[string]struct {
		last []hyperv1.ServicePublishingStrategyMapping
		want int32
	}{
		"the service has a node port":               {[]hyperv1.ServicePublishingStrategyMapping{byNodePort(hyperv1.Ignition, 1), byNodePort(hyperv1.APIServer, port), byNodePort(hyperv1.OIDC, 2)}, port},
		"the service is not in the list":            {[]hyperv1.ServicePublishingStrategyMapping{byNodePort(hyperv1.Ignition, 1)}, 0},
		"the service was not published by NodePort": {[]hyperv1.ServicePublishingStrategyMapping{as(hyperv1.LoadBalancer, given)}, 0},
		"the service had no NodePort settings":      {[]hyperv1.ServicePublishingStrategyMapping{as(hyperv1.NodePort, nil)}, 0},
	} {
		t.Run("When "+name+", it should keep only a node port of the same service", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(portOf(tc.last, byNodePort(hyperv1.APIServer, 0))).To(Equal(tc.want))
			services := []hyperv1.ServicePublishingStrategyMapping{
				as(hyperv1.NodePort, nil), as(hyperv1.LoadBalancer, &hyperv1.NodePortPublishingStrategy{Address: "a"}), byNodePort(hyperv1.APIServer, 0), byNodePort(hyperv1.OIDC, 7)}
			keepNodePorts(services, tc.last, hyperv1.HostedClusterStatus{})
			g.Expect(services[1].ServicePublishingStrategy.NodePort.Port).To(BeZero(), "it has no use for one")
			g.Expect(services[2].ServicePublishingStrategy.NodePort.Port).To(Equal(tc.want))
			g.Expect(services[3].ServicePublishingStrategy.NodePort.Port).To(BeEquivalentTo(7), "its user chose it")
		})
	}
}
