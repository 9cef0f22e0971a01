// SPDX-License-Identifier: Apache-2.0

package upsert_test

import (
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/manifest"
	"github.com/openshift/hypershift/support/upsert"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - name: web
        image: web:1
        ports: [{containerPort: 80}]
        env: [{name: A, value: "1"}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}
      volumes: [{name: tmp, emptyDir: {}}]
`

func load(t testing.TB, text string) *appsv1.Deployment {
	t.Helper()
	obj, err := manifest.LoadAs[*appsv1.Deployment](scheme.Scheme, fstest.MapFS{"d.yaml": {Data: []byte(text)}}, "d.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestApply(t *testing.T) {
	c, writes := counted(t)
	apply := func(g Gomega, obj client.Object) bool {
		wrote, err := upsert.Apply(t.Context(), c, "test", obj)
		g.Expect(err).NotTo(HaveOccurred())
		return wrote
	}
	live := func(g Gomega) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, d)).To(Succeed())
		return d
	}

	t.Run("When an object does not exist, it should be created and returned as the server stored it", func(t *testing.T) {
		g := NewWithT(t)
		d := load(t, deployment)
		g.Expect(apply(g, d)).To(BeTrue())
		g.Expect(d.UID).NotTo(BeEmpty())
		g.Expect(d.Spec.Template.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyAlways))
	})

	t.Run("When an object matches the manifest, it should not be written, whatever the server has filled in", func(t *testing.T) {
		g := NewWithT(t)
		before := *writes
		d := load(t, deployment)
		g.Expect(apply(g, d)).To(BeFalse())
		g.Expect(*writes).To(Equal(before))
		g.Expect(d.UID).NotTo(BeEmpty())
	})

	t.Run("When a user adds fields that the manifest does not set, they should be kept", func(t *testing.T) {
		g := NewWithT(t)
		d := live(g)
		d.Labels = map[string]string{"team": "x"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "s"})
		g.Expect(c.Update(t.Context(), d)).To(Succeed())
		g.Expect(apply(g, load(t, deployment))).To(BeFalse())
		g.Expect(live(g).Spec.Template.Spec.Containers).To(HaveLen(2))
	})

	t.Run("When a user changes a field that the manifest sets, it should be restored", func(t *testing.T) {
		g := NewWithT(t)
		d := live(g)
		d.Spec.Template.Spec.Containers[0].Image = "other"
		g.Expect(c.Update(t.Context(), d)).To(Succeed())
		g.Expect(apply(g, load(t, deployment))).To(BeTrue())
		g.Expect(live(g).Spec.Template.Spec.Containers[0].Image).To(Equal("web:1"))
	})

	t.Run("When a user adds labels and finalizers, they should be kept beside our own", func(t *testing.T) {
		g := NewWithT(t)
		held := func() *appsv1.Deployment {
			d := load(t, deployment)
			d.Finalizers = []string{"our/finalizer"}
			return d
		}
		g.Expect(apply(g, held())).To(BeTrue())
		d := live(g)
		d.Annotations["theirs"], d.Finalizers = "1", append(d.Finalizers, "their/finalizer")
		g.Expect(c.Update(t.Context(), d)).To(Succeed())
		g.Expect(apply(g, held())).To(BeFalse())
		g.Expect(live(g).Finalizers).To(ConsistOf("our/finalizer", "their/finalizer"))
		g.Expect(live(g).Annotations).To(HaveKey("theirs"))
	})

	t.Run("When a field is removed from the manifest, it should be removed from the object", func(t *testing.T) {
		g := NewWithT(t)
		d := load(t, deployment)
		d.Spec.Template.Spec.NodeSelector = nil
		d.Spec.Template.Spec.Containers[0].Env = nil
		g.Expect(apply(g, d)).To(BeTrue())
		g.Expect(live(g).Spec.Template.Spec.NodeSelector).To(BeEmpty())
		g.Expect(live(g).Spec.Template.Spec.Containers[0].Env).To(BeEmpty())
		g.Expect(live(g).Labels).To(HaveKeyWithValue("team", "x"))
	})

	t.Run("When the server rejects an object, the error should name the object", func(t *testing.T) {
		g := NewWithT(t)
		bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "missing", Name: "cm"}}
		_, err := upsert.Apply(t.Context(), c, "test", bad)
		g.Expect(err).To(MatchError(ContainSubstring("applying ConfigMap missing/cm")))
	})

	t.Run("When AppliedFrom compares an object with a manifest, it should compare the content", func(t *testing.T) {
		g := NewWithT(t)
		d := load(t, deployment)
		g.Expect(apply(g, d.DeepCopy())).To(BeTrue())
		same, err := upsert.AppliedFrom(scheme.Scheme, live(g), d.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same).To(BeTrue())
		d.Spec.Template.Spec.Containers[0].Image = "web:2"
		same, err = upsert.AppliedFrom(scheme.Scheme, live(g), d)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same).To(BeFalse())
	})
}
