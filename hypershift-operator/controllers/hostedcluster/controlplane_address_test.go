// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// released sets a release of a distribution.
func released(d releaseinfo.Distribution) func(*scope) {
	return func(s *scope) {
		s.wantedControlPlane = releaseinfo.New("registry.example/release:1", releaseinfo.Payload{Version: "1.36.3", Distribution: d})
	}
}

// at sets the address of all services.
func at(host string) func(*scope) {
	return func(s *scope) {
		for i := range s.HC.Spec.Services {
			s.HC.Spec.Services[i].ServicePublishingStrategy.NodePort.Address = host
		}
	}
}

func TestOtherAddress(t *testing.T) {
	const wanted = "192.0.2.99"
	// published returns the control plane as it was before the user changed the address.
	published := func(t *testing.T, d releaseinfo.Distribution) *hyperv1.HostedControlPlane {
		hcp := &hyperv1.HostedControlPlane{}
		NewWithT(t).Expect(withScope(released(d)).shapeControlPlane(hcp)).To(Succeed())
		for i := range hcp.Spec.Services {
			hcp.Spec.Services[i].ServicePublishingStrategy.NodePort.Port = int32(30001 + i)
		}
		return hcp
	}
	t.Run("When the release supports another address, all services should move there and keep their ports", func(t *testing.T) {
		g, hcp := NewWithT(t), published(t, releaseinfo.Kubernetes)
		s := withScope(released(releaseinfo.Kubernetes), at(wanted))
		g.Expect(s.shapeControlPlane(hcp)).To(Succeed())
		for i, service := range hcp.Spec.Services {
			g.Expect(*service.ServicePublishingStrategy.NodePort).To(Equal(hyperv1.NodePortPublishingStrategy{Address: wanted, Port: int32(30001 + i)}))
		}
		g.Expect(s.Conditions).NotTo(HaveKey(string(hyperv1.PublishedAddressUpToDate)))
	})
	t.Run("When the release is OpenShift, the services should not change, and a condition should name what to set back", func(t *testing.T) {
		g, hcp := NewWithT(t), published(t, releaseinfo.OpenShift)
		before := hcp.DeepCopy()
		s := withScope(released(releaseinfo.OpenShift), at(wanted))
		g.Expect(s.shapeControlPlane(hcp)).To(Succeed())
		g.Expect(hcp.Spec.Services).To(Equal(before.Spec.Services))
		c := s.Conditions[string(hyperv1.PublishedAddressUpToDate)]
		g.Expect(string(c.Status) + "/" + c.Reason).To(Equal("False/NotSupported"))
		g.Expect(c.Message).To(And(ContainSubstring("Set spec.services back for"), ContainSubstring("APIServer (NodePort ")))

		s = withScope(released(releaseinfo.OpenShift))
		g.Expect(s.shapeControlPlane(hcp)).To(Succeed())
		g.Expect(s.Conditions).NotTo(HaveKey(string(hyperv1.PublishedAddressUpToDate)))
		g.Expect(s.Cleared).To(ContainElement(string(hyperv1.PublishedAddressUpToDate)))
	})
	t.Run("When the ignition-server moves, machines should use the address in its certificate", func(t *testing.T) {
		g := NewWithT(t)
		s := withScope(at(wanted))
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: ignitionServerName}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 31777}}}}
		r := &Reconciler{Client: fake.NewClientBuilder().WithObjects(service).Build()}
		endpoint := func() string {
			got, err := r.ignitionEndpoint(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			return got
		}
		g.Expect(endpoint()).To(Equal(wanted+":31777"), "an operator that tells of no addresses has one")
		s.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{ServedAddresses: []hyperv1.ServedAddress{{IgnitionHost: "192.0.2.10"}}}}
		g.Expect(endpoint()).To(Equal("192.0.2.10:31777"))
		s.HCP.Status.ServedAddresses[0].IgnitionHost = wanted
		g.Expect(endpoint()).To(Equal(wanted + ":31777"))
	})
}

func TestPublishedAt(t *testing.T) {
	for want, strategy := range map[string]hyperv1.ServicePublishingStrategy{
		"NodePort 192.0.2.10":          {Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.10", Port: 30001}},
		"LoadBalancer":                 {Type: hyperv1.LoadBalancer},
		"LoadBalancer api.example.com": {Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: "api.example.com"}},
		"Route api.example.com":        {Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: "api.example.com"}},
		"":                             {},
	} {
		if got := publishedAt(strategy); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
