package main

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/version"
)

func TestPublishVersions(t *testing.T) {
	stale := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: supportedVersions}, Data: map[string]string{"server-version": "old"},
	}
	for name, have := range map[string][]client.Object{
		"When nothing is told yet it should tell": nil, "When an older operator told it should correct that": {stale},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			writes := 0
			c := fake.NewClientBuilder().WithObjects(have...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					writes++
					return c.Create(ctx, obj, opts...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					writes++
					return c.Patch(ctx, obj, patch, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
					writes++
					return c.Update(ctx, obj, opts...)
				},
			}).Build()
			for range 2 {
				g.Expect(publishVersions(t.Context(), c, "hypershift")).To(Succeed())
			}
			cm := &corev1.ConfigMap{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "hypershift", Name: "supported-versions"}, cm)).To(Succeed())
			g.Expect(cm.Data).To(HaveKeyWithValue("server-version", version.Commit()))
			g.Expect(cm.Labels).To(HaveKeyWithValue("hypershift.openshift.io/supported-versions", "true"))
			for key, oldest := range map[string]string{"supported-versions": "4.14", "supported-kubernetes-versions": "1.31"} {
				var told struct{ Versions []string }
				g.Expect(json.Unmarshal([]byte(cm.Data[key]), &told)).To(Succeed())
				g.Expect(told.Versions[len(told.Versions)-1]).To(Equal(oldest))
				g.Expect(told.Versions).To(HaveEach(MatchRegexp(`^\d+\.\d+$`)), "what lets people choose a release compares these")
			}
			g.Expect(writes).To(Equal(1), "what is told already is not written again")
		})
	}
}
