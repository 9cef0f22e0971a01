// SPDX-License-Identifier: Apache-2.0

package clusterautoscaler

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

type images map[string]string

func (i images) ComponentImage(tag string) (string, bool) {
	image, ok := i[tag]
	return image, ok
}

func scopeWith(annotations map[string]string, payload images) *component.Scope {
	hcp := fixture.ControlPlane()
	hcp.Annotations = annotations
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
	return &component.Scope{HCP: hcp, Images: payload, Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).Build()}
}

func TestWanted(t *testing.T) {
	full := images{"cluster-autoscaler": "a:1", "availability-prober": "p:1"}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		payload     images
		want        bool
	}{
		{"the payload has the image", nil, full, true},
		{"the payload lacks the image", nil, images{"availability-prober": "p:1"}, false},
		{"machine management is disabled by an empty annotation", map[string]string{hyperv1.DisableMachineManagement: ""}, full, false},
		{"an annotation scales it to zero and keeps its objects", map[string]string{hyperv1.DisableClusterAutoscalerAnnotation: "true"}, full, true},
	} {
		t.Run("When "+tc.name+" it should decide whether the component runs", func(t *testing.T) {
			got, err := enabled(t.Context(), scopeWith(tc.annotations, tc.payload))
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	for value, want := range map[string]int32{"": 1, "true": 0, "false": 1} {
		t.Run("When the annotation to disable it is "+value+" it should have one replica or none", func(t *testing.T) {
			obj, err := New().Render(t.Context(), scopeWith(map[string]string{hyperv1.DisableClusterAutoscalerAnnotation: value}, full))
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(*obj.(*appsv1.Deployment).Spec.Replicas).To(Equal(want), "two would each scale")
		})
	}
	t.Run("When the cluster limits scaling, the Pod should get the flags and discover only its own namespace", func(t *testing.T) {
		scope := scopeWith(nil, full)
		scope.HCP.Spec.Autoscaling.Scaling = hyperv1.ScaleUpOnly
		obj, err := New().Render(t.Context(), scope)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		pod := obj.(*appsv1.Deployment).Spec.Template.Spec
		g.Expect(pod.Containers[0].Args).To(ContainElements("--scale-down-enabled=false", "--node-group-auto-discovery=clusterapi:namespace=$(MY_NAMESPACE)"))
		g.Expect(pod.InitContainers).To(HaveLen(1), "it waits for the API server whose pods it counts")
		g.Expect(*pod.AutomountServiceAccountToken).To(BeTrue(), "machines are in the management cluster")
	})
}
