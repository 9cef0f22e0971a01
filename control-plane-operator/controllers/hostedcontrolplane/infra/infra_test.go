// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

const namespace = fixture.Namespace

func nodePort(address string, port int32) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: address, Port: port}}
}

func route(host string) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: host}}
}

func loadBalancer(host string) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: host}}
}

func controlPlane(api, ignition hyperv1.ServicePublishingStrategy) *hyperv1.HostedControlPlane {
	return &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo", UID: "1"},
		Spec: hyperv1.HostedControlPlaneSpec{Services: []hyperv1.ServicePublishingStrategyMapping{
			{Service: hyperv1.APIServer, ServicePublishingStrategy: api},
			{Service: hyperv1.Ignition, ServicePublishingStrategy: ignition},
		}},
	}
}

func TestValidate(t *testing.T) {
	good := nodePort("192.0.2.10", 0)
	cases := []struct {
		name          string
		api, ignition hyperv1.ServicePublishingStrategy
		routes        bool
		want          string
	}{
		{name: "node ports", api: good, ignition: good},
		{name: "a load balancer and a node port", api: loadBalancer(""), ignition: good},
		{name: "Routes in a cluster that has Routes", api: route("api.example.com"), ignition: route(""), routes: true},
		{name: "Routes in a cluster without Routes", api: route("api.example.com"), ignition: good, want: "which this management cluster does not have"},
		{name: "a Route without a host", api: route(""), ignition: good, routes: true, want: "set route.hostname"},
		{name: "a node port without an address", api: nodePort("", 0), ignition: good, want: "set nodePort.address"},
		{name: "a load balancer for ignition", api: good, ignition: loadBalancer(""), want: "service Ignition cannot be published by \"LoadBalancer\""},
		{name: "nothing", api: hyperv1.ServicePublishingStrategy{Type: hyperv1.None}, ignition: good, want: "use one of [NodePort LoadBalancer Route]"},
	}
	for _, tc := range cases {
		t.Run("When services are published by "+tc.name+" it should report whether that works", func(t *testing.T) {
			g := NewWithT(t)
			err := (&Reconciler{HasRoutes: tc.routes}).Validate(controlPlane(tc.api, tc.ignition))
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			}
		})
	}
	t.Run("When the API server has no publishing strategy, it should name the missing entry", func(t *testing.T) {
		err := (&Reconciler{}).Validate(&hyperv1.HostedControlPlane{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no entry for APIServer")))
	})
}

// world returns a Reconciler of a fake management cluster with one control plane.
func world(hcp *hyperv1.HostedControlPlane) *Reconciler {
	c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(hcp).WithStatusSubresource(&corev1.Service{}).Build()
	return &Reconciler{Client: c, HasRoutes: true, IngressDomain: "apps.example.com"}
}

func service(t *testing.T, r *Reconciler) *corev1.Service {
	t.Helper()
	s := &corev1.Service{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: APIService}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReconcile(t *testing.T) {
	t.Run("When the API is published by a node port, it should wait until a port is allocated", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(nodePort("192.0.2.10", 0), nodePort("192.0.2.11", 0))
		r := world(hcp)
		result, err := r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra).To(BeNil())
		g.Expect(result.Waiting).To(ContainSubstring("no node port yet"))

		s := service(t, r)
		g.Expect(s.Spec.Selector).To(Equal(map[string]string{"app": "kube-apiserver"}))
		s.Spec.Ports[0].NodePort = 31234
		g.Expect(r.Client.Update(t.Context(), s)).To(Succeed())
		result, err = r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra).To(Equal(&component.Infra{
			API:      component.Endpoint{Host: "192.0.2.10", Port: 31234},
			Ignition: component.Endpoint{Host: "192.0.2.11"},
		}))
		g.Expect(service(t, r).Spec.Ports[0].NodePort).To(Equal(int32(31234)), "the allocated port stays")
	})

	t.Run("When the user sets a node port, it should publish that port", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(nodePort("192.0.2.10", 30443), nodePort("192.0.2.10", 0))
		result, err := world(hcp).Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra.API.Port).To(Equal(int32(30443)))
	})

	t.Run("When the Service is recreated, it should request the previously published node port", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(nodePort("192.0.2.10", 0), nodePort("192.0.2.10", 0))
		hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30878}
		result, err := world(hcp).Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra.API.Port).To(Equal(int32(30878)))

		hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443}
		r := world(hcp)
		_, err = r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(service(t, r).Spec.Ports[0].NodePort).To(BeZero(), "what another kind of publishing had is no node port")
	})

	t.Run("When the API is published by a load balancer, it should wait for it and prefer the user's host name", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(loadBalancer(""), nodePort("192.0.2.10", 0))
		hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"198.51.100.0/24"}}
		r := world(hcp)
		result, err := r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Waiting).To(ContainSubstring("not provisioned"))
		s := service(t, r)
		g.Expect(s.Spec.LoadBalancerSourceRanges).To(Equal([]string{"198.51.100.0/24"}))
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.7"}}
		g.Expect(r.Client.Status().Update(t.Context(), s)).To(Succeed())
		result, err = r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra.API).To(Equal(component.Endpoint{Host: "203.0.113.7", Port: 6443}))

		hcp.Spec.Services[0].ServicePublishingStrategy = loadBalancer("api.example.com")
		result, err = r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra.API.Host).To(Equal("api.example.com"))
		g.Expect(service(t, r).Annotations).To(HaveKeyWithValue(externalDNSAnnotation, "api.example.com"))
	})

	t.Run("When the API is published by a Route, it should pass TLS through, and delete the Route with the strategy", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(route("api.example.com"), route(""))
		r := world(hcp)
		result, err := r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra.API).To(Equal(component.Endpoint{Host: "api.example.com", Port: 443}))
		g.Expect(result.Infra.Ignition.Host).To(Equal("ignition-server-clusters-demo.apps.example.com"))
		g.Expect(service(t, r).Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
		made := &routev1.Route{}
		key := client.ObjectKey{Namespace: namespace, Name: APIService}
		g.Expect(r.Client.Get(t.Context(), key, made)).To(Succeed())
		g.Expect(made.Spec.TLS.Termination).To(Equal(routev1.TLSTerminationPassthrough))

		hcp.Spec.Services[0].ServicePublishingStrategy = nodePort("192.0.2.10", 30443)
		_, err = r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsNotFound(r.Client.Get(t.Context(), key, made))).To(BeTrue())
	})
}

func TestDistribute(t *testing.T) {
	same := corev1.ServiceTrafficDistributionPreferSameNode
	for name, tc := range map[string]struct {
		policy   hyperv1.AvailabilityPolicy
		sameNode bool
		want     *string
	}{
		"When API servers run on several nodes, the Service should prefer the client's node":      {policy: hyperv1.HighlyAvailable, sameNode: true, want: &same},
		"When the management cluster lacks PreferSameNode, it should set no traffic distribution": {policy: hyperv1.HighlyAvailable},
		"When there is one API server, it should set no traffic distribution":                     {policy: hyperv1.SingleReplica, sameNode: true},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := controlPlane(nodePort("192.0.2.10", 30443), nodePort("192.0.2.10", 0))
			hcp.Spec.ControllerAvailabilityPolicy = tc.policy
			r := world(hcp)
			r.SameNode = tc.sameNode
			g := NewWithT(t)
			_, err := r.Reconcile(t.Context(), hcp)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(service(t, r).Spec.TrafficDistribution).To(Equal(tc.want))
		})
	}
}

func TestIgnitionHost(t *testing.T) {
	cases := []struct {
		name     string
		strategy hyperv1.ServicePublishingStrategy
		domain   string
		want     string
	}{
		{"a node port", nodePort("192.0.2.10", 0), "", "192.0.2.10"},
		{"a Route with a host", route("ignition.example.com"), "apps.example.com", "ignition.example.com"},
		{"a Route without a host", route(""), "apps.example.com", "ignition-server-clusters-demo.apps.example.com"},
		{"a Route without a host and no ingress domain", route(""), "", ""},
	}
	for _, tc := range cases {
		t.Run("When ignition is published by "+tc.name+" it should return the host that machines use", func(t *testing.T) {
			r := &Reconciler{IngressDomain: tc.domain}
			NewWithT(t).Expect(r.ignitionHost(controlPlane(nodePort("x", 0), tc.strategy))).To(Equal(tc.want))
		})
	}
	t.Run("When a namespace is long, the host should still have a valid DNS label", func(t *testing.T) {
		g := NewWithT(t)
		r := &Reconciler{IngressDomain: "apps.example.com"}
		label, _, _ := strings.Cut(r.defaultHost(strings.Repeat("n", 46)+"-"+strings.Repeat("m", 30)), ".")
		g.Expect(len(label)).To(BeNumerically("<=", 63))
		g.Expect(label).NotTo(HaveSuffix("-"))
	})
}
