package workload

import (
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func wanted(env ...corev1.EnvVar) *appsv1.Deployment {
	labels := map[string]string{"app": "x"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", Labels: labels, Finalizers: []string{"test/finalizer"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "default", UID: types.UID("1")}}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "i:1", Env: env}},
			}},
		},
	}
}

func TestApply(t *testing.T) {
	c := fixture.NewFaulty(fixture.Start(t))
	variable := corev1.EnvVar{Name: "A", Value: "1"}
	live := func(g *WithT) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, d)).To(Succeed())
		return d
	}
	apply := func(g *WithT, d *appsv1.Deployment) []string {
		c.Log = nil
		_, err := Apply(t.Context(), c, d)
		g.Expect(err).NotTo(HaveOccurred())
		return c.Log
	}

	t.Run("When it is not there, it should create it", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(apply(g, wanted(variable))).To(Equal([]string{"create default/x"}))
		g.Expect(live(g).Spec.Strategy.Type).To(Equal(appsv1.RollingUpdateDeploymentStrategyType), "the server fills in defaults")
	})
	t.Run("When nothing changed, it should write nothing in spite of the defaults", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(apply(g, wanted(variable))).To(BeEmpty())
	})
	t.Run("When a variable goes, it should go", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(apply(g, wanted())).To(HaveLen(1))
		g.Expect(live(g).Spec.Template.Spec.Containers[0].Env).To(BeEmpty())
	})
	t.Run("When somebody changes a field, it should change it back", func(t *testing.T) {
		g := NewWithT(t)
		d := live(g)
		d.Spec.Template.Spec.Containers[0].Image = "evil:1"
		g.Expect(c.Update(t.Context(), d)).To(Succeed())
		g.Expect(apply(g, wanted())).To(HaveLen(1))
		g.Expect(live(g).Spec.Template.Spec.Containers[0].Image).To(Equal("i:1"))
	})
	t.Run("When somebody adds metadata, it should stay", func(t *testing.T) {
		g := NewWithT(t)
		d := live(g)
		d.Annotations["theirs"], d.Labels["theirs"] = "1", "1"
		d.Finalizers = append(d.Finalizers, "their/finalizer")
		g.Expect(c.Update(t.Context(), d)).To(Succeed())
		g.Expect(apply(g, wanted())).To(BeEmpty())
		g.Expect(live(g).Finalizers).To(ConsistOf("test/finalizer", "their/finalizer"))
		g.Expect(live(g).OwnerReferences).To(HaveLen(1))
	})
}
