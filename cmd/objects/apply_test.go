// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/cmd/kube"
)

// foreign is of a kind that the scheme of the commands does not contain.
type foreign struct{ metav1.ObjectMeta }

func (*foreign) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (f *foreign) DeepCopyObject() runtime.Object { return f }

func TestApply(t *testing.T) {
	key := client.ObjectKey{Namespace: "a", Name: "b"}
	configMap := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string]string{"k": value}}
	}
	t.Run("When another manager owns a field, it should take over that field and keep the others", func(t *testing.T) {
		g := NewWithT(t)
		theirs := configMap("theirs")
		theirs.Data["kept"] = "yes"
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(theirs).Build()
		g.Expect(Apply(t.Context(), c, "us", configMap("ours"), false)).To(Succeed())
		got := &corev1.ConfigMap{}
		g.Expect(c.Get(t.Context(), key, got)).To(Succeed())
		g.Expect(got.Data).To(Equal(map[string]string{"k": "ours", "kept": "yes"}))
	})
	t.Run("When it is a dry run, it should send a dry-run request", func(t *testing.T) {
		g := NewWithT(t)
		var asked client.ApplyOptions
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(_ context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				asked.ApplyOptions(opts)
				return nil
			},
		}).Build()
		g.Expect(Apply(t.Context(), c, "us", configMap("ours"), true)).To(Succeed())
		g.Expect(asked.DryRun).To(Equal([]string{metav1.DryRunAll}))
		g.Expect(asked.FieldManager).To(Equal("us"))
		asked = client.ApplyOptions{}
		g.Expect(Apply(t.Context(), c, "us", configMap("ours"), false)).To(Succeed())
		g.Expect(asked.DryRun).To(BeEmpty())
	})
	t.Run("When the kind is unknown, it should return an error before any request", func(t *testing.T) {
		NewWithT(t).Expect(Apply(t.Context(), nil, "us", &foreign{}, false)).To(MatchError(ContainSubstring("find the kind of *objects.foreign")))
	})
}

func TestWriteStops(t *testing.T) {
	namespace := func(name string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	t.Run("When the writer fails, it should stop and return the error", func(t *testing.T) {
		closed := errors.New("broken pipe")
		w := &limited{left: 1, err: closed}
		g := NewWithT(t)
		g.Expect(Write(w, []client.Object{namespace("a"), namespace("b"), namespace("c")}, false)).To(MatchError(closed))
		g.Expect(w.String()).To(And(ContainSubstring("name: a\n"), Not(ContainSubstring("name: b\n"))))
	})
	t.Run("When the kind of an object is unknown, it should name the type", func(t *testing.T) {
		NewWithT(t).Expect(Write(&strings.Builder{}, []client.Object{&foreign{}}, false)).To(MatchError(ContainSubstring("*objects.foreign")))
	})
}

// limited fails after a number of writes.
type limited struct {
	strings.Builder
	left int
	err  error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left--; l.left < 0 {
		return 0, l.err
	}
	return l.Builder.Write(p)
}

// TestToUnstructuredOfTemplates checks that server-set timestamps are removed at every level.
func TestToUnstructuredOfTemplates(t *testing.T) {
	g := NewWithT(t)
	now := metav1.Unix(1, 0)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", CreationTimestamp: now}}
	deployment.Spec.Template.CreationTimestamp = now
	deployment.Spec.Template.Labels = map[string]string{"app": "b"}
	u, err := ToUnstructured(deployment)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(u.GetAPIVersion()).To(Equal("apps/v1"))
	text, err := u.MarshalJSON()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(ContainSubstring("creationTimestamp"))
	g.Expect(string(text)).To(ContainSubstring(`"app":"b"`))
	g.Expect(deployment.CreationTimestamp).To(Equal(now), "the object itself stays as it is")
}

func TestDescribeUnknown(t *testing.T) {
	NewWithT(t).Expect(Describe(&foreign{metav1.ObjectMeta{Namespace: "a", Name: "b"}})).To(Equal("*objects.foreign a/b"))
}
