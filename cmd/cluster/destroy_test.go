// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

func hostedCluster(finalizers ...string) *hyperv1.HostedCluster {
	return &hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Finalizers: finalizers},
		Spec:       hyperv1.HostedClusterSpec{InfraID: "demo-abcde", Platform: hyperv1.PlatformSpec{Type: hyperv1.MAASPlatform}},
	}
}

func labelled(obj client.Object, name, infraID string) client.Object {
	obj.SetNamespace("clusters")
	obj.SetName(name)
	if infraID != "" {
		obj.SetLabels(map[string]string{hyperv1.AutoCreatedForInfraLabel: infraID})
	}
	return obj
}

// leftovers returns objects of demo, of another cluster, and of a user.
func leftovers() []client.Object {
	return []client.Object{
		labelled(&corev1.Secret{}, "demo-pull-secret", "demo-abcde"),
		labelled(&corev1.Secret{}, "demo-maas-credentials", "demo-abcde"),
		labelled(&corev1.Secret{}, "custom-credentials", "demo-abcde"),
		labelled(&corev1.ConfigMap{}, "demo-user-ca-bundle", "demo-abcde"),
		labelled(&corev1.Secret{}, "other-pull-secret", "other-abcde"),
		labelled(&corev1.Secret{}, "demo-kept", ""),
	}
}

func remaining(t *testing.T, c client.Client) []string {
	t.Helper()
	var names []string
	var secrets corev1.SecretList
	var configMaps corev1.ConfigMapList
	if err := errors.Join(c.List(t.Context(), &secrets), c.List(t.Context(), &configMaps)); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		names = append(names, s.Name)
	}
	for _, cm := range configMaps.Items {
		names = append(names, cm.Name)
	}
	return names
}

func TestDestroy(t *testing.T) {
	tests := []struct {
		name      string
		cluster   *hyperv1.HostedCluster
		edit      func(*destroy)
		remaining []string
		says      string
		usage     bool
	}{
		{
			name: "When the cluster exists, it should be deleted with all objects created for it", cluster: hostedCluster(),
			remaining: []string{"other-pull-secret", "demo-kept"},
		},
		{
			name:      "When the cluster is already gone, it should delete the leftovers by name",
			remaining: []string{"custom-credentials", "other-pull-secret", "demo-kept"},
		},
		{
			name: "When the cluster is gone and its infra ID is known, it should delete the leftovers by infra ID", edit: func(d *destroy) { d.infraID = "demo-abcde" },
			remaining: []string{"other-pull-secret", "demo-kept"},
		},
		{
			name: "When the cluster has another platform, it should return a usage error", cluster: hostedCluster(), edit: func(d *destroy) { d.platform = hyperv1.NonePlatform },
			remaining: []string{"demo-pull-secret", "demo-maas-credentials", "custom-credentials", "demo-user-ca-bundle", "other-pull-secret", "demo-kept"},
			says:      "use: destroy cluster maas --name demo", usage: true,
		},
		{
			name: "When the cluster is not deleted in time, it should keep the credentials and report the finalizers", cluster: hostedCluster("hypershift.openshift.io/finalizer"),
			edit:      func(d *destroy) { d.gracePeriod = 10 * time.Millisecond },
			remaining: []string{"demo-pull-secret", "demo-maas-credentials", "custom-credentials", "demo-user-ca-bundle", "other-pull-secret", "demo-kept"},
			says:      "in the way: waiting for finalizers hypershift.openshift.io/finalizer",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			builder := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(leftovers()...)
			if tt.cluster != nil {
				builder = builder.WithObjects(tt.cluster)
			}
			c := builder.Build()
			d := &destroy{name: "demo", namespace: "clusters", platform: hyperv1.MAASPlatform, gracePeriod: 5 * time.Second, cloudResources: true}
			if tt.edit != nil {
				tt.edit(d)
			}

			err := d.destroy(t.Context(), c, progress.New(&strings.Builder{}, clock.RealClock{}))

			g.Expect(remaining(t, c)).To(ConsistOf(tt.remaining))
			if tt.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(exit.Code(err) == exit.Usage).To(Equal(tt.usage))
		})
	}
}

func TestDestroyAsksForCloudResources(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		t.Run(map[bool]string{true: "When they are to go it should say so to the operator", false: "When they are to stay it should not"}[wanted], func(t *testing.T) {
			g := NewWithT(t)
			annotated := false
			c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hostedCluster()).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					annotated = obj.GetAnnotations()[hyperv1.CleanupCloudResourcesAnnotation] == "true"
					return c.Delete(ctx, obj, opts...)
				},
			}).Build()
			d := &destroy{name: "demo", namespace: "clusters", platform: hyperv1.MAASPlatform, gracePeriod: time.Second, cloudResources: wanted}
			g.Expect(d.destroy(t.Context(), c, progress.New(&strings.Builder{}, clock.RealClock{}))).To(Succeed())
			g.Expect(annotated).To(Equal(wanted))
		})
	}
}

func TestDestroyErrors(t *testing.T) {
	refused := errors.New("no rights")
	tests := []struct {
		name  string
		funcs interceptor.Funcs
		says  string
	}{
		{"When the cluster cannot be read, it should return an error", interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return refused
			},
		}, "read HostedCluster clusters/demo: no rights"},
		{"When the cluster cannot be annotated, it should return an error", interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return refused
			},
		}, "annotate HostedCluster clusters/demo: no rights"},
		{"When the cluster cannot be deleted, it should return an error", interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refused },
		}, "delete HostedCluster clusters/demo: no rights"},
		{"When the Secrets cannot be listed, it should return an error", interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused },
		}, "list the Secrets of namespace clusters: no rights"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hostedCluster()).WithInterceptorFuncs(tt.funcs).Build()
			d := &destroy{name: "demo", namespace: "clusters", platform: hyperv1.MAASPlatform, gracePeriod: time.Second, cloudResources: true}
			err := d.destroy(t.Context(), c, progress.New(&strings.Builder{}, clock.RealClock{}))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

func TestLookGone(t *testing.T) {
	g := NewWithT(t)
	hc := hostedCluster("a", "b")
	hc.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterDestroyed), Status: "False", Reason: "Releasing", Message: "2 machines left"}}
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hc).Build()
	state, err := lookGone(t.Context(), c, client.ObjectKeyFromObject(hc))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Done).To(BeFalse())
	g.Expect(state.Message).To(And(ContainSubstring("a, b"), ContainSubstring("2 machines left")))
}

func TestLookGoneTellsWhatTheOperatorWaitsFor(t *testing.T) {
	for observed, says := range map[int64]OmegaMatcher{
		2: ContainSubstring("MAAS does not answer"),
		1: Not(ContainSubstring("MAAS does not answer")), // The message predates the deletion.
	} {
		g := NewWithT(t)
		hc := hostedCluster("a")
		hc.Generation = 2
		hc.Status.Conditions = []metav1.Condition{{
			Type: string(hyperv1.HostedClusterAvailable), Status: "False", Reason: "WaitingForAvailable",
			Message: "MAAS does not answer", ObservedGeneration: observed,
		}}
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hc).Build()
		state, err := lookGone(t.Context(), c, client.ObjectKeyFromObject(hc))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(state.Message).To(says)
	}
}

func TestDestroyOfNothingDoesNotClaimADestruction(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).Build()
	d := &destroy{name: "typo", namespace: "clusters", platform: hyperv1.MAASPlatform, gracePeriod: time.Second}
	var out strings.Builder
	g.Expect(d.destroy(t.Context(), c, progress.New(&out, clock.RealClock{}))).To(Succeed())
	g.Expect(out.String()).To(And(ContainSubstring("nothing to destroy"), Not(ContainSubstring("typo destroyed"))))
}
