// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/openshift/hypershift/support/testenv"
)

// secret is a text that no line may contain.
const secret = "correct-horse-battery"

func lines(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for text := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n") {
		line := map[string]any{}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		delete(line, "ts")
		all = append(all, line)
	}
	out.Reset()
	return all
}

func TestManager(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	logger, err := parsed(t, "--log-level=1").logger(&out)
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := NewManager(testenv.Start(t), ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Logger: logger})
	g.Expect(err).NotTo(HaveOccurred())
	c, ctx := mgr.GetClient(), InPhase(log.IntoContext(t.Context(), logger.WithValues("controller", "demo")), "secrets")
	said := func(verb, kind, object string, more ...string) map[string]any {
		line := map[string]any{"level": "v1", "msg": "Wrote to Kubernetes", "controller": "demo", "phase": "secrets", "verb": verb, "kind": kind, "object": object}
		for i := 0; i < len(more); i += 2 {
			line[more[i]] = more[i+1]
		}
		return line
	}
	object := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}, Data: map[string][]byte{"password": []byte(secret)}}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "P", Value: secret}}}}}}}}
	annotate := func(ctx context.Context) error {
		return c.Patch(ctx, object(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
	}

	for _, tc := range []struct {
		name  string
		write func() error
		want  map[string]any
	}{
		{"When an object is created, it should log the create", func() error { return c.Create(ctx, object()) }, said("create", "Secret", "default/demo")},
		{"When an object is updated, it should log the update", func() error { return c.Update(ctx, object()) }, said("update", "Secret", "default/demo")},
		{"When an object is patched, it should log the patch", func() error { return annotate(ctx) }, said("patch", "Secret", "default/demo")},
		{"When an object is applied, it should log the apply", func() error {
			return c.Apply(ctx, corev1apply.Secret("demo", "default").WithData(map[string][]byte{"more": []byte(secret)}), client.FieldOwner("test"))
		}, said("apply", "Secret", "default/demo")},
		{"When an object is deleted, it should log the delete", func() error { return c.Delete(ctx, object()) }, said("delete", "Secret", "default/demo")},
		{"When all objects of a kind are deleted, it should log the delete of all", func() error {
			return c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("default"))
		}, said("delete all", "Secret", "/")},
		{"When a Deployment is created, it should log its kind", func() error { return c.Create(ctx, deployment) }, said("create", "Deployment", "default/demo")},
		{"When a status is updated, it should log the update of the status", func() error {
			deployment.Status.Replicas = 1
			return c.Status().Update(ctx, deployment)
		}, said("update", "Deployment", "default/demo", "subresource", "status")},
		{"When a status is patched, it should log the patch of the status", func() error {
			before := deployment.DeepCopy()
			deployment.Status.Replicas = 2
			return c.Status().Patch(ctx, deployment, client.MergeFrom(before))
		}, said("patch", "Deployment", "default/demo", "subresource", "status")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.write()).To(Succeed())
			g.Expect(out.String()).NotTo(ContainSubstring(secret))
			got := slices.DeleteFunc(lines(t, &out), func(line map[string]any) bool { return line["msg"] != "Wrote to Kubernetes" })
			g.Expect(got).To(ConsistOf(tc.want))
		})
	}
	t.Run("When a write fails, it should leave the logging to the caller", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(client.IgnoreNotFound(annotate(ctx))).To(Succeed())
		g.Expect(out.String()).To(BeEmpty())
	})
}
