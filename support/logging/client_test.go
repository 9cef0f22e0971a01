// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// writer returns a logging client of a fake API server. Each write returns err.
func writer(err error) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return err
		},
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return err
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return err
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return err
		},
	}).Build(), writes())
}

func TestWritesThatAreRare(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}
	foreign := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": map[string]any{"namespace": "n", "name": "disk"}}}
	apply := client.RawPatch(types.ApplyPatchType, []byte("{}"))
	for name, tc := range map[string]struct {
		write func(context.Context, client.Client) error
		want  map[string]any
	}{
		"an eviction": {func(ctx context.Context, c client.Client) error {
			return c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
		},
			map[string]any{"verb": "create", "kind": "Pod", "object": "default/demo", "subresource": "eviction"}},
		"an apply through Patch": {func(ctx context.Context, c client.Client) error { return c.Patch(ctx, pod, apply) },
			map[string]any{"verb": "apply", "kind": "Pod", "object": "default/demo"}},
		"an apply of a status through Patch": {func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, pod, apply) },
			map[string]any{"verb": "apply", "kind": "Pod", "object": "default/demo", "subresource": "status"}},
		"an apply of an unstructured object": {func(ctx context.Context, c client.Client) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(foreign))
		},
			map[string]any{"verb": "apply", "kind": "DataVolume", "object": "n/disk"}},
		"an apply of a status": {func(ctx context.Context, c client.Client) error {
			return c.Status().Apply(ctx, corev1apply.Pod("demo", "default").WithStatus(corev1apply.PodStatus()))
		}, map[string]any{"verb": "apply", "kind": "Pod", "object": "default/demo", "subresource": "status"}},
		"an object whose kind is not in the scheme": {func(ctx context.Context, c client.Client) error { return c.Create(ctx, foreign) },
			map[string]any{"verb": "create", "kind": "DataVolume", "object": "n/disk"}},
	} {
		t.Run("When there is "+name+", it should be logged once, and not if it failed or the level is too low", func(t *testing.T) {
			g, refused := NewWithT(t), errors.New("refused")
			var out bytes.Buffer
			for _, attempt := range []struct {
				level string
				err   error
				lines bool
			}{{"1", nil, true}, {"1", refused, false}, {"0", nil, false}} {
				logger, err := parsed(t, "--log-level="+attempt.level).logger(&out)
				g.Expect(err).NotTo(HaveOccurred())
				err = tc.write(log.IntoContext(t.Context(), logger), writer(attempt.err))
				if attempt.err == nil {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(attempt.err), "the caller has to know")
				}
				if !attempt.lines {
					g.Expect(out.String()).To(BeEmpty())
					continue
				}
				line := map[string]any{"level": "v1", "msg": "Wrote to Kubernetes"}
				for key, value := range tc.want {
					line[key] = value
				}
				g.Expect(lines(t, &out)).To(ConsistOf(line))
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	for _, level := range []string{"0", "1"} {
		logger, err := parsed(t, "--log-level="+level).logger(&out)
		g.Expect(err).NotTo(HaveOccurred())
		warnings{}.HandleWarningHeaderWithContext(log.IntoContext(t.Context(), logger), 299, "kube-apiserver", "v1beta1 is deprecated")
		if level == "0" {
			g.Expect(out.String()).To(BeEmpty(), "it concerns who writes the product")
		}
	}
	g.Expect(lines(t, &out)).To(ConsistOf(HaveKeyWithValue("warning", "v1beta1 is deprecated")))
}
