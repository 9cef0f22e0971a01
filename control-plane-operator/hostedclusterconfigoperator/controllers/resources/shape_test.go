// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
)

// TestResolveOddAnswers covers unusual answers of a resolver.
func TestResolveOddAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		found, want []string
	}{
		"an IPv4-mapped IPv6 address and its IPv4 address": {[]string{"::ffff:192.0.2.1", "192.0.2.1"}, []string{"192.0.2.1"}},
		"invalid addresses":                {[]string{"localhost", "", "192.0.2.2"}, []string{"192.0.2.2"}},
		"several IPv6 addresses, unsorted": {[]string{"2001:db8::2", "2001:db8::1", "2001:db8::2"}, []string{"2001:db8::1", "2001:db8::2"}},
		"only invalid addresses":           {[]string{"localhost", "192.0.2"}, nil},
	} {
		t.Run("When a resolver returns "+name+" it should return the valid addresses", func(t *testing.T) {
			g := NewWithT(t)
			got, err := (&Reconciler{Lookup: func(context.Context, string) ([]string, error) { return tc.found, nil }}).resolve(t.Context(), "api.example.com")
			g.Expect(got).To(Equal(tc.want))
			if tc.want == nil {
				g.Expect(err).To(MatchError(ContainSubstring("api.example.com, has no address")))
			}
		})
	}
	t.Run("When the API is published under an IP address, it should not query a resolver", func(t *testing.T) {
		g := NewWithT(t)
		got, err := (&Reconciler{}).resolve(t.Context(), "2001:db8::1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal([]string{"2001:db8::1"}))
	})
}

// TestEndpointsOfSeveralAddresses checks that EndpointSlice and Endpoints have the same addresses.
func TestEndpointsOfSeveralAddresses(t *testing.T) {
	g, addresses := NewWithT(t), []string{"192.0.2.1", "192.0.2.2"}
	endpoints, slice := apiEndpoints(addresses, 30443), apiEndpointSlice(addresses, 30443)
	g.Expect(client.ObjectKeyFromObject(slice)).To(Equal(client.ObjectKey{Namespace: "default", Name: "kubernetes"}))
	g.Expect(client.ObjectKeyFromObject(endpoints)).To(Equal(client.ObjectKeyFromObject(slice)))
	g.Expect(slice.Labels).To(HaveKeyWithValue(discoveryv1.LabelServiceName, "kubernetes"))
	g.Expect(slice.Endpoints).To(HaveLen(2))
	g.Expect(endpoints.Subsets).To(HaveLen(1))
	for i, address := range addresses {
		g.Expect(slice.Endpoints[i].Addresses).To(Equal([]string{address}))
		g.Expect(slice.Endpoints[i].Conditions.Ready).To(HaveValue(BeTrue()))
		g.Expect(endpoints.Subsets[0].Addresses[i].IP).To(Equal(address))
	}
	g.Expect(*slice.Ports[0].Port).To(Equal(endpoints.Subsets[0].Ports[0].Port))
	g.Expect(*slice.Ports[0].Name).To(Equal(endpoints.Subsets[0].Ports[0].Name), "a Service's port is found by its name")
}

func TestDomains(t *testing.T) {
	g, hcp := NewWithT(t), fixture.GuestControlPlane()
	g.Expect(dnsConfig(hcp).Spec).To(Equal(configv1.DNSSpec{BaseDomain: "demo.example.com"}), "no zones where none are named")
	hcp.Spec.DNS.PrivateZoneID = "Z1"
	g.Expect(dnsConfig(hcp).Spec.PublicZone).To(BeNil())
	g.Expect(dnsConfig(hcp).Spec.PrivateZone).To(HaveValue(Equal(configv1.DNSZone{ID: "Z1"})))

	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{}
	g.Expect(ingressConfig(hcp).Spec.Domain).To(Equal("apps.demo.example.com"))
	hcp.Spec.Configuration.Ingress = &configv1.IngressSpec{AppsDomain: "web.example.org"}
	g.Expect(ingressConfig(hcp).Spec).To(Equal(configv1.IngressSpec{Domain: "apps.demo.example.com", AppsDomain: "web.example.org"}))
	hcp.Spec.Configuration.Ingress.Domain = "own.example.org"
	g.Expect(ingressConfig(hcp).Spec.Domain).To(Equal("own.example.org"))
	g.Expect(hcp.Spec.Configuration.Ingress.AppsDomain).To(Equal("web.example.org"), "what the user wrote is copied and not changed")
}

// TestInfrastructureOfAGuest checks that status fields of other controllers stay.
func TestInfrastructureOfAGuest(t *testing.T) {
	g, hcp := NewWithT(t), fixture.GuestControlPlane()
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "2001:db8::1", Port: 6443}
	status := configv1.InfrastructureStatus{CPUPartitioning: configv1.CPUPartitioningAllNodes, PlatformStatus: &configv1.PlatformStatus{External: &configv1.ExternalPlatformStatus{}}}
	setInfrastructureStatus(hcp, configv1.NonePlatformType, &status)
	g.Expect(status.APIServerURL).To(Equal("https://[2001:db8::1]:6443"))
	g.Expect(status.APIServerInternalURL).To(Equal(status.APIServerURL))
	g.Expect(status.CPUPartitioning).To(Equal(configv1.CPUPartitioningAllNodes))
	g.Expect(status.PlatformStatus.External).NotTo(BeNil())
	g.Expect(status.InfrastructureTopology).To(Equal(configv1.SingleReplicaTopologyMode))
	before := *status.DeepCopy()
	setInfrastructureStatus(hcp, configv1.NonePlatformType, &status)
	g.Expect(status).To(Equal(before), "a settled system writes nothing")
}

func TestUnknownPlatform(t *testing.T) {
	hcp := fixture.GuestControlPlane()
	hcp.Spec.Platform.Type = "Mainframe"
	NewWithT(t).Expect((&Reconciler{}).applyInfrastructure(t.Context(), hcp)).To(MatchError(ContainSubstring(`platform "Mainframe" is not known`)))
}

// TestWhatWakes checks that a status update by another controller triggers no reconcile.
func TestWhatWakes(t *testing.T) {
	slice := func(generation int64) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
	}
	for name, tc := range map[string]struct {
		before, after int64
		ours, want    bool
	}{
		"its spec changes":                          {1, 2, true, true},
		"its status changes":                        {2, 2, true, false},
		"its kind has no generation":                {0, 0, true, true},
		"its spec changes and it has another owner": {1, 2, false, false},
	} {
		t.Run("When "+name+" it should reconcile or ignore the update", func(t *testing.T) {
			ours := predicate.NewPredicateFuncs(func(client.Object) bool { return tc.ours })
			NewWithT(t).Expect(spec(ours).Update(event.UpdateEvent{ObjectOld: slice(tc.before), ObjectNew: slice(tc.after)})).To(Equal(tc.want))
		})
	}
}

// TestWhoseGuest checks that a guest is not changed if it has no address yet, or belongs to the operator of a
// different release.
func TestWhoseGuest(t *testing.T) {
	for name, tc := range map[string]struct {
		host, only string
		stops      bool
	}{
		"has no address":                   {"", "", true},
		"is not restricted to an operator": {"192.0.2.10", "", false},
		"belongs to this operator":         {"192.0.2.10", fixture.ReleaseImage, false},
		"belongs to another operator":      {"192.0.2.10", "registry.example/another:1", true},
	} {
		t.Run("When a guest "+name+" it should reconcile or stop", func(t *testing.T) {
			hcp := fixture.GuestControlPlane()
			hcp.Status.ControlPlaneEndpoint.Host = tc.host
			_, err := (&Reconciler{OperateOnReleaseImage: tc.only}).observe(t.Context(), hcp)
			NewWithT(t).Expect(errors.Is(err, phase.ErrStop)).To(Equal(tc.stops))
		})
	}
}

// TestSetCondition checks that one condition is written, by a separate field owner, and not again while it does not
// change.
func TestSetCondition(t *testing.T) {
	type written struct{ owner, kind, status string }
	var writes []written
	var refused error
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithTypeConverters(managedfields.NewDeducedTypeConverter()).Build(), interceptor.Funcs{
		SubResourceApply: func(_ context.Context, _ client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			o := client.SubResourceApplyOptions{}
			for _, opt := range opts {
				opt.ApplyToSubResourceApply(&o)
			}
			u := obj.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
			conditions := u["status"].(map[string]any)["conditions"].([]any)
			NewWithT(t).Expect(conditions).To(HaveLen(1), "the others are somebody else's")
			first := conditions[0].(map[string]any)
			writes = append(writes, written{o.FieldManager, first["type"].(string), first["status"].(string)})
			NewWithT(t).Expect(o.Force).To(HaveValue(BeTrue()))
			NewWithT(t).Expect(sub).To(Equal("status"))
			return refused
		},
	})
	g, hcp := NewWithT(t), fixture.GuestControlPlane()
	hcp.Generation = 3
	hcp.Status.Conditions = []metav1.Condition{{Type: "Others", Status: metav1.ConditionTrue, Reason: "AsExpected"},
		{Type: "Ours", Status: metav1.ConditionTrue, Reason: "AsExpected", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}}
	g.Expect(SetCondition(t.Context(), c, hcp, condition.True("Ours", "AsExpected", ""))).To(Succeed())
	g.Expect(writes).To(BeEmpty())
	g.Expect(SetCondition(t.Context(), c, hcp, condition.True("Ours", "AsExpected", "with a word"))).To(Succeed())
	g.Expect(SetCondition(t.Context(), c, hcp, condition.False("New", "Broken", ""))).To(Succeed())
	g.Expect(writes).To(HaveLen(2))
	g.Expect(writes[0].owner).NotTo(Equal(writes[1].owner), "an owner that leaves a condition out takes it away")
	g.Expect(writes[1].kind + " " + writes[1].status).To(Equal("New False"))
	refused = errors.New("the server is dead")
	g.Expect(SetCondition(t.Context(), c, hcp, condition.False("New", "Broken", ""))).To(MatchError(ContainSubstring("writing condition New of HostedControlPlane demo")))
	g.Expect(meta.FindStatusCondition(hcp.Status.Conditions, "Others")).NotTo(BeNil())
}

func TestReportsNothingOfAPause(t *testing.T) {
	NewWithT(t).Expect((&Reconciler{}).report(t.Context(), &scope{hcp: fixture.GuestControlPlane(), paused: true}, nil)).To(Succeed(), "what was said before stands")
}

func TestCopySpec(t *testing.T) {
	g, to := NewWithT(t), configv1.SchedulerSpec{Profile: configv1.LowNodeUtilization}
	copySpec(nil, &to)
	g.Expect(to.Profile).To(Equal(configv1.LowNodeUtilization))
	copySpec(ptr.To(configv1.SchedulerSpec{}), &to)
	g.Expect(to.Profile).To(BeEmpty())
}
