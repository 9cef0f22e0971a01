// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/testenv"
)

// published runs a reconcile, and returns the Service.
func published(t *testing.T, r *Reconciler, hcp *hyperv1.HostedControlPlane) *corev1.Service {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), hcp); err != nil {
		t.Fatal(err)
	}
	return service(t, r)
}

// owners returns the owner references of a control plane's objects.
func owners() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: "demo", UID: "1",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
}

// unversioned ignores the metadata that the server sets.
var unversioned = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")

func TestService(t *testing.T) {
	t.Run("When the API is published, the Service should be owned by the control plane and select its Pods", func(t *testing.T) {
		hcp := controlPlane(nodePort("192.0.2.10", 30443), nodePort("192.0.2.10", 0))
		want := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver", Labels: map[string]string{"app": "kube-apiserver"}, OwnerReferences: owners()},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "kube-apiserver"}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
				Ports: []corev1.ServicePort{{Name: "client", Port: 6443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("client"), NodePort: 30443}},
			},
		}
		if diff := cmp.Diff(want, published(t, world(hcp), hcp), unversioned); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("When a user sets the IP families and adds a port, it should keep the families and remove the port", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(nodePort("192.0.2.10", 30443), nodePort("192.0.2.10", 0))
		r := world(hcp)
		s := published(t, r, hcp)
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "other", Port: 1})
		g.Expect(r.Client.Update(t.Context(), s)).To(Succeed())
		s = published(t, r, hcp)
		g.Expect(s.Spec.IPFamilyPolicy).To(HaveValue(Equal(corev1.IPFamilyPolicySingleStack)))
		g.Expect(s.Spec.Ports).To(HaveLen(1))
	})

	t.Run("When publishing changes from a node port to a Route, the Service should become a ClusterIP Service", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(nodePort("192.0.2.10", 30443), nodePort("192.0.2.10", 0))
		r := world(hcp)
		published(t, r, hcp)
		hcp.Spec.Services[0].ServicePublishingStrategy = route("api.example.com")
		s := published(t, r, hcp)
		g.Expect(s.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
		g.Expect(s.Spec.Ports[0].NodePort).To(BeZero())
	})

	t.Run("When a node port is still served, the load balancer Service should keep that port", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(loadBalancer(""), nodePort("192.0.2.10", 0))
		hcp.Status.ServedAddresses = []hyperv1.ServedAddress{address(hyperv1.Route, "api.example.com", 443, ""), address(hyperv1.NodePort, "192.0.2.10", 31234, "")}
		s := published(t, world(hcp), hcp)
		g.Expect(s.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
		g.Expect(s.Spec.Ports[0].NodePort).To(Equal(int32(31234)))
	})

	t.Run("When a load balancer is still served beside a node port, the Service should stay a load balancer", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(nodePort("192.0.2.10", 30443), nodePort("192.0.2.10", 0))
		hcp.Status.ServedAddresses = []hyperv1.ServedAddress{address(hyperv1.LoadBalancer, "203.0.113.7", 6443, "")}
		g.Expect(published(t, world(hcp), hcp).Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
	})
}

func TestLoadBalancer(t *testing.T) {
	t.Run("When the load balancer has a host name, it should publish the host name", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(loadBalancer(""), nodePort("192.0.2.10", 0))
		r := world(hcp)
		s := published(t, r, hcp)
		g.Expect(s.Annotations).To(BeEmpty(), "no name was asked for")
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com", IP: "203.0.113.7"}}
		g.Expect(r.Client.Status().Update(t.Context(), s)).To(Succeed())
		result, err := r.Reconcile(t.Context(), hcp)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Infra.API).To(Equal(component.Endpoint{Host: "lb.example.com", Port: 6443}))
	})

	t.Run("When allowedCIDRBlocks are removed, it should remove the source ranges", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(loadBalancer(""), nodePort("192.0.2.10", 0))
		hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"198.51.100.0/24", "192.0.2.0/24"}}
		r := world(hcp)
		g.Expect(published(t, r, hcp).Spec.LoadBalancerSourceRanges).To(Equal([]string{"198.51.100.0/24", "192.0.2.0/24"}))
		g.Expect(published(t, r, hcp).Spec.LoadBalancerSourceRanges).To(HaveLen(2), "once each")
		hcp.Spec.Networking.APIServer = nil
		g.Expect(published(t, r, hcp).Spec.LoadBalancerSourceRanges).To(BeEmpty())
	})

	t.Run("When the host name changes, it should keep the previous name in DNS while that is served", func(t *testing.T) {
		g := NewWithT(t)
		hcp := controlPlane(loadBalancer("old.example.com"), nodePort("192.0.2.10", 0))
		r := world(hcp)
		published(t, r, hcp)
		hcp.Status.ServedAddresses = []hyperv1.ServedAddress{address(hyperv1.LoadBalancer, "old.example.com", 6443, "")}
		hcp.Spec.Services[0].ServicePublishingStrategy = loadBalancer("new.example.com")
		g.Expect(published(t, r, hcp).Annotations).To(HaveKeyWithValue(externalDNSAnnotation, "new.example.com,old.example.com"))
		hcp.Status.ServedAddresses = []hyperv1.ServedAddress{address(hyperv1.LoadBalancer, "new.example.com", 6443, "")}
		g.Expect(published(t, r, hcp).Annotations).To(HaveKeyWithValue(externalDNSAnnotation, "new.example.com"))
	})
}

func TestRoute(t *testing.T) {
	hcp := controlPlane(route("api.example.com"), route(""))
	key := client.ObjectKey{Namespace: namespace, Name: APIService}
	t.Run("When the cluster has Routes, the Route should be owned by the control plane and pass TLS through", func(t *testing.T) {
		r := world(hcp)
		published(t, r, hcp)
		got := &routev1.Route{}
		if err := r.Client.Get(t.Context(), key, got); err != nil {
			t.Fatal(err)
		}
		want := &routev1.Route{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver", OwnerReferences: owners()},
			Spec: routev1.RouteSpec{
				Host: "api.example.com", To: routev1.RouteTargetReference{Kind: "Service", Name: "kube-apiserver"},
				TLS: &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyNone},
			},
		}
		if diff := cmp.Diff(want, got, unversioned); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("When the management cluster has no Routes, it should create none", func(t *testing.T) {
		r := world(hcp)
		r.HasRoutes = false
		published(t, r, hcp)
		NewWithT(t).Expect(r.Client.Get(t.Context(), key, &routev1.Route{})).NotTo(Succeed())
	})
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		former, wanted hyperv1.ServicePublishingStrategy
	}{
		"a node port":                       {wanted: nodePort("192.0.2.10", 30443)},
		"a route":                           {wanted: route("api.example.com")},
		"a node port that replaces a route": {former: route("api.example.com"), wanted: nodePort("192.0.2.10", 30443)},
	} {
		t.Run("When a request for "+name+" is refused the reconcile should fail", func(t *testing.T) {
			hcp := controlPlane(tc.former, nodePort("192.0.2.10", 0))
			r := world(hcp)
			if tc.former.Type != "" {
				published(t, r, hcp)
			}
			hcp.Spec.Services[0].ServicePublishingStrategy = tc.wanted
			grudging := testenv.NewGrudging(r.Client.(client.WithWatch))
			r.Client = grudging
			grudging.Exhaust(t, func() (ctrl.Result, error) {
				_, err := r.Reconcile(t.Context(), hcp)
				return ctrl.Result{}, err
			}, func() any { return nil })
		})
	}
}
