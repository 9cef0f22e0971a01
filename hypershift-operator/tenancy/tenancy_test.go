// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

var demo = client.ObjectKey{Namespace: "clusters", Name: "demo"}

// made returns the annotation of an object that was created for a cluster; nil if owner is empty.
func made(owner string) map[string]string {
	if owner == "" {
		return nil
	}
	return map[string]string{hyperv1.HostedClusterAnnotation: owner}
}

// TestNamespace checks that a control plane only uses a namespace that was created for it or assigned to it.
func TestNamespace(t *testing.T) {
	for _, tc := range []struct {
		name  string
		there []client.Object
		says  string
	}{
		{"When the namespace does not exist, the cluster should be allowed to use it", nil, ""},
		{"When the namespace was created for the cluster, the cluster should be allowed to use it", []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: made("clusters/demo")}}}, ""},
		{"When the namespace existed before, it should name the annotation that an administrator sets", []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}}},
			"by the annotation hypershift.openshift.io/cluster=clusters/demo"},
		{"When the namespace belongs to another cluster, it should name that cluster", []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: made("clusters/d-emo")}}},
			"belongs to HostedCluster clusters/d-emo already"},
		{"When the namespace belongs to a cluster of the same name elsewhere, it should name that cluster",
			[]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: made("others/demo")}}}, "belongs to HostedCluster others/demo"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			why, err := Namespace(t.Context(), fake.NewClientBuilder().WithObjects(tc.there...).Build(), "clusters-demo", demo)
			g.Expect(err).NotTo(HaveOccurred())
			if tc.says == "" {
				g.Expect(why).To(BeEmpty())
				return
			}
			g.Expect(why).To(And(HavePrefix("namespace clusters-demo"), ContainSubstring(tc.says)))
		})
	}
	t.Run("When the namespace cannot be read, it should return an error", func(t *testing.T) {
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("timed out")
			}}).Build()
		_, err := Namespace(t.Context(), c, "clusters-demo", demo)
		NewWithT(t).Expect(err).To(MatchError("reading namespace clusters-demo: timed out"))
	})
}

// TestClaim checks that existing objects without the annotation are not taken over.
func TestClaim(t *testing.T) {
	for _, tc := range []struct {
		name, owner, version, says string
	}{
		{"When the object is new, it should be annotated with its owner", "", "", ""},
		{"When the object belongs to the cluster, it should keep its owner", "clusters/demo", "7", ""},
		{"When the object is new and already annotated, it should keep its owner", "clusters/demo", "", ""},
		{"When the object belongs to another cluster, it should return an error that names that cluster", "clusters/other", "7", "it belongs to HostedCluster clusters/other,"},
		{"When a new object is annotated for another cluster, it should return an error", "clusters/other", "", "it belongs to HostedCluster clusters/other,"},
		{"When the object existed before, it should return an error and not change the object", "", "7", "was not created for HostedCluster clusters/demo"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: tc.version, Annotations: made(tc.owner)}}
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "their", "own")
			if tc.owner == "" && tc.version == "" {
				secret.Annotations = nil
			}
			before := secret.DeepCopy()
			err := Claim(secret, demo)
			if tc.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
				g.Expect(secret).To(Equal(before), "nothing of it is changed")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(Owner(secret)).To(Equal("clusters/demo"))
			for key, value := range before.Annotations {
				g.Expect(secret.Annotations).To(HaveKeyWithValue(key, value))
			}
		})
	}
}

// TestGone checks that objects of a cluster are deleted, and that others with the same names stay.
func TestGone(t *testing.T) {
	secret := func(name, owner string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: name, Annotations: made(owner)}}
	}
	left := func(t *testing.T, c client.Client) []string {
		t.Helper()
		list := &corev1.SecretList{}
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return names
	}
	objects := func() []client.Object {
		return []client.Object{secret("absent", ""), secret("theirs", ""), secret("others", ""), secret("first", ""), secret("second", "")}
	}
	there := []client.Object{secret("theirs", ""), secret("others", "clusters/other"), secret("first", "clusters/demo"), secret("second", "clusters/demo"), secret("unnamed", "clusters/demo")}
	t.Run("When all objects can be deleted, it should delete only those of the cluster", func(t *testing.T) {
		g, c := NewWithT(t), fake.NewClientBuilder().WithObjects(there...).Build()
		g.Expect(Gone(t.Context(), c, demo, objects()...)).To(Succeed())
		g.Expect(left(t, c)).To(ConsistOf("theirs", "others", "unnamed"))
		g.Expect(Gone(t.Context(), c, demo, objects()...)).To(Succeed(), "nothing is left to do")
	})
	t.Run("When one object cannot be deleted, it should delete the others", func(t *testing.T) {
		g := NewWithT(t)
		c := fake.NewClientBuilder().WithObjects(there...).WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				if obj.GetName() == "first" {
					return errors.New("held")
				}
				return c.Delete(ctx, obj, opts...)
			}}).Build()
		g.Expect(Gone(t.Context(), c, demo, objects()...)).To(MatchError(ContainSubstring("held")))
		g.Expect(left(t, c)).To(ConsistOf("theirs", "others", "unnamed", "first"))
	})
	t.Run("When one object cannot be read, it should return an error and not treat it as deleted", func(t *testing.T) {
		g := NewWithT(t)
		c := fake.NewClientBuilder().WithObjects(there...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if key.Name == "first" {
					return apierrors.NewForbidden(corev1.Resource("secrets"), "first", errors.New("no"))
				}
				return c.Get(ctx, key, obj, opts...)
			}}).Build()
		g.Expect(Gone(t.Context(), c, demo, objects()...)).To(MatchError(ContainSubstring("forbidden")))
		g.Expect(left(t, c)).To(ConsistOf("theirs", "others", "unnamed", "first"))
	})
}
