// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestUsability checks that the heartbeats of a node, several times a minute, trigger no reconcile.
func TestUsability(t *testing.T) {
	node := func(edits ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		for _, edit := range edits {
			edit(n)
		}
		return n
	}
	status := func(i int, s corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Conditions[i].Status = s }
	}
	tainted := func(keys ...string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			for _, key := range keys {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
			}
		}
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"sends a heartbeat":            {node(), node(func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = metav1.Now() }), false},
		"has little memory":            {node(), node(status(0, corev1.ConditionTrue)), false},
		"has another label":            {node(), node(func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }), false},
		"is cordoned":                  {node(), node(func(n *corev1.Node) { n.Spec.Unschedulable = true }), false},
		"is no longer Ready":           {node(), node(status(1, corev1.ConditionFalse)), true},
		"becomes unknown":              {node(status(1, corev1.ConditionFalse)), node(status(1, corev1.ConditionUnknown)), true},
		"becomes Ready":                {node(func(n *corev1.Node) { n.Status.Conditions = nil }), node(), true},
		"is tainted":                   {node(), node(tainted("a")), true},
		"gets a different taint":       {node(tainted("a")), node(tainted("b")), true},
		"loses its taint":              {node(tainted("a")), node(), true},
		"gets an empty list of taints": {node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{} }), node(), false},
	} {
		t.Run("When a node "+name+" it should reconcile or ignore the update", func(t *testing.T) {
			NewWithT(t).Expect(usability().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.want))
		})
	}
	t.Run("When an object other than a Node changes, it should ignore the update without a panic", func(t *testing.T) {
		NewWithT(t).Expect(usability().Update(event.UpdateEvent{ObjectOld: &corev1.Pod{}, ObjectNew: &corev1.Pod{}})).To(BeFalse())
	})
}

func TestControlPlaneVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		image *string
		want  string
	}{
		"no release image of its own": {nil, ""},
		"an empty release image":      {ptr.To(""), ""},
		"a release image of its own":  {ptr.To("registry.example/release:1.36.4"), "1.36.4"},
	} {
		t.Run("When a control plane has "+name+" it should return the version of that release or none", func(t *testing.T) {
			hcp := fixture.ControlPlane()
			hcp.Spec.ControlPlaneReleaseImage = tc.image
			hcp.Status.ControlPlaneVersion.Desired.Version = "1.36.4"
			NewWithT(t).Expect(controlPlaneVersion(hcp)).To(Equal(tc.want))
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
		"has no address":                              {"", "", true},
		"is not restricted to an operator":            {"192.0.2.10", "", false},
		"belongs to this operator":                    {"192.0.2.10", fixture.ReleaseImage, false},
		"belongs to another operator":                 {"192.0.2.10", "registry.example/another:1", true},
		"belongs to this operator and has no address": {"", fixture.ReleaseImage, true},
	} {
		t.Run("When a guest "+name+" it should reconcile or stop", func(t *testing.T) {
			g, hcp := NewWithT(t), fixture.ControlPlane()
			hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: tc.host, Port: 6443}
			c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithTypeConverters(managedfields.NewDeducedTypeConverter()).
				WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}).Build()
			hcp.Spec.ControlPlaneReleaseImage, hcp.Status.ControlPlaneVersion.Desired.Version = ptr.To("registry.example/release:1.36.4"), "1.36.4"
			r := &Reconciler{Management: c, Guest: &component.Guest{Client: c, Live: c}, OperateOnReleaseImage: tc.only}
			s, err := r.observe(t.Context(), hcp)
			g.Expect(errors.Is(err, phase.ErrStop)).To(Equal(tc.stops))
			if tc.stops {
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.HCP).To(BeIdenticalTo(hcp))
			g.Expect(s.ControlPlaneVersion).To(Equal("1.36.4"))
			g.Expect(s.GuestNodes).To(ConsistOf(HaveField("Name", "worker-1")))
			g.Expect(s.Guest).To(BeIdenticalTo(r.Guest))
			g.Expect(s.Client).To(BeIdenticalTo(c), "components are told of in the management cluster")
		})
	}
}

// asked is a release provider that records its request, and fails.
type asked struct{ image, secret string }

func (a *asked) Lookup(_ context.Context, image string, secret []byte) (*releaseinfo.ReleaseImage, error) {
	a.image, a.secret = image, string(secret)
	return nil, errors.New("no such image")
}

func TestReadRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		wrong  string
		want   asked
	}{
		"is missing": {nil, "reading pull secret clusters-demo/pull-secret", asked{}},
		"exists":     {fixture.HostedNamespace()[1].(*corev1.Secret), "no such image", asked{fixture.ReleaseImage, `{"auths":{}}`}},
	} {
		t.Run("When the pull secret "+name+" it should read the payload with it or fail", func(t *testing.T) {
			g, a := NewWithT(t), &asked{}
			builder := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithTypeConverters(managedfields.NewDeducedTypeConverter())
			if tc.secret != nil {
				builder.WithObjects(tc.secret)
			}
			s := &component.Scope{HCP: fixture.ControlPlane()}
			_, err := (&Reconciler{Management: builder.Build(), Releases: a}).readRelease(t.Context(), s)
			g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
			g.Expect(*a).To(Equal(tc.want))
			g.Expect(s.Images).To(BeNil())
		})
	}
}
