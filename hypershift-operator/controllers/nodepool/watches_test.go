// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

func TestPools(t *testing.T) {
	demo := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "clusters", Name: "demo"}}}
	pool := fixture.NodePool("clusters")
	pool.Spec.Config = []corev1.LocalObjectReference{{Name: "extra"}}
	stranger := fixture.NodePool("clusters")
	stranger.Name, stranger.Spec.ClusterName = "stranger", "other"
	hosted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}
	others := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere-demo",
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "elsewhere/demo"}}}
	plain := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(pool, stranger, hosted,
		others, plain).Build()}
	config := func(namespace, name string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	for _, tc := range []struct {
		name string
		obj  client.Object
		want []reconcile.Request
	}{
		{"When a pool references the ConfigMap, it should reconcile that pool", config("clusters", "extra", nil), demo},
		{"When no pool references the ConfigMap, it should reconcile none", config("clusters", "other", nil), nil},
		{"When the control plane created the ConfigMap, it should reconcile the cluster's pools", config("clusters-demo", "ignition-config-fips", map[string]string{coreConfigLabel: "true"}), demo},
		{"When the control plane's ConfigMap is of another kind, it should reconcile none", config("clusters-demo", "kas-config", nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(r.poolsOfConfig(t.Context(), tc.obj)).To(Equal(tc.want))
		})
	}
	t.Run("When the ignition-server's CA changes, it should reconcile the cluster's pools", func(t *testing.T) {
		g := NewWithT(t)
		ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "ignition-server-ca-cert"}}
		g.Expect(r.poolsOfSecret(t.Context(), ca)).To(Equal(demo))
		ca.Namespace = "elsewhere"
		g.Expect(r.poolsOfSecret(t.Context(), ca)).To(BeEmpty())
	})
	t.Run("When a cluster changes, it should reconcile only its pools", func(t *testing.T) {
		NewWithT(t).Expect(r.poolsOfCluster(t.Context(), fixture.HostedCluster("clusters"))).To(Equal(demo))
	})
	t.Run("When an object has a pool's annotation, it should reconcile that pool", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}}}
		for _, namespace := range []string{"clusters", "clusters-demo"} {
			secret.Namespace = namespace
			g.Expect(r.poolByAnnotation(t.Context(), secret)).To(Equal(demo))
			g.Expect(r.poolsOfSecret(t.Context(), secret)).To(Equal(demo))
		}
		g.Expect(r.poolByAnnotation(t.Context(), &corev1.Secret{})).To(BeEmpty())
	})
	t.Run("When another tenant's object has a pool's annotation, it should reconcile none", func(t *testing.T) {
		g := NewWithT(t)
		for _, namespace := range []string{"elsewhere", "elsewhere-demo", "gone"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
				Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}}}
			g.Expect(r.poolsOfSecret(t.Context(), secret)).To(BeEmpty(), namespace)
		}
	})
}

// TestPoolsOf checks which pools are reconciled when an object changes that pools depend on.
func TestPoolsOf(t *testing.T) {
	asked := func(names ...string) (all []reconcile.Request) {
		for _, name := range names {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "clusters", Name: name}})
		}
		return all
	}
	pool := func(namespace, name, cluster string, change func(*hyperv1.NodePool)) *hyperv1.NodePool {
		p := fixture.NodePool(namespace)
		p.Name, p.Spec.ClusterName = name, cluster
		change(p)
		return p
	}
	none := func(*hyperv1.NodePool) {}
	hosted := func(name, cluster string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: cluster}}}
	}
	c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(
		pool("clusters", "a", "demo", func(p *hyperv1.NodePool) {
			p.Spec.Config = []corev1.LocalObjectReference{{Name: "first"}, {Name: "read"}}
		}),
		pool("clusters", "b", "demo", func(p *hyperv1.NodePool) { p.Spec.TuningConfig = []corev1.LocalObjectReference{{Name: "read"}} }),
		pool("clusters", "c", "other", none), pool("elsewhere", "d", "demo", none),
		hosted("clusters-demo", "clusters/demo"), hosted("of-nobody", "demo"), hosted("clusters-other", "clusters/other"),
	).Build()
	config := func(namespace, name string, labels map[string]string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	secret := func(namespace, name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/a"}}}
	}
	r := &Reconciler{Client: c}
	for name, tc := range map[string]struct {
		run  func(context.Context, client.Object) []reconcile.Request
		obj  client.Object
		want []reconcile.Request
	}{
		"When pools reference a ConfigMap as config or tuningConfig, it should reconcile them":    {r.poolsOfConfig, config("clusters", "read", nil), asked("a", "b")},
		"When a pool references the ConfigMap as the first of two, it should reconcile that pool": {r.poolsOfConfig, config("clusters", "first", nil), asked("a")},
		"When the ConfigMap is in another namespace, it should reconcile none":                    {r.poolsOfConfig, config("elsewhere", "read", nil), nil},
		"When tuning generated the ConfigMap, it should reconcile the cluster's pools":            {r.poolsOfConfig, config("clusters-demo", "x", map[string]string{tunedGeneratedLabel: "true"}), asked("a", "b")},
		"When the ConfigMap is the status of a profile, it should reconcile the cluster's pools":  {r.poolsOfConfig, config("clusters-demo", "x", map[string]string{performanceStatusLabel: "true"}), asked("a", "b")},
		"When the ConfigMap is a core ignition config, it should reconcile the cluster's pools":   {r.poolsOfConfig, config("clusters-demo", "x", map[string]string{coreConfigLabel: "true"}), asked("a", "b")},
		"When the ConfigMap's labels are false, it should reconcile none": {r.poolsOfConfig, config("clusters-demo", "x",
			map[string]string{coreConfigLabel: "false", tunedGeneratedLabel: "false", performanceStatusLabel: "false"}), nil},
		"When a pool references a ConfigMap with the core label, it should reconcile the pool": {r.poolsOfConfig, config("clusters", "first", map[string]string{coreConfigLabel: "true"}), asked("a")},
		"When the namespace's annotation names no cluster, it should reconcile none":           {r.poolsOfConfig, config("of-nobody", "x", map[string]string{coreConfigLabel: "true"}), nil},
		"When the CA belongs to another cluster, it should reconcile that cluster's pools":     {r.poolsOfSecret, secret("clusters-other", "ignition-server-ca-cert"), asked("c")},
		"When a Secret belongs to a pool, it should reconcile that pool":                       {r.poolsOfSecret, secret("clusters-demo", "token-a-1"), asked("a")},
		"When a cluster changes, it should reconcile its pools":                                {r.poolsOfCluster, fixture.HostedCluster("clusters"), asked("a", "b")},
		"When an annotation names no pool, it should reconcile none": {r.poolByAnnotation,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{hyperv1.NodePoolAnnotation: "nothing"}}}, nil},
		"When pools cannot be listed, it should reconcile none": {(&Reconciler{Client: scopetest.Answering(c, "list .*", testenv.ErrRefused)}).poolsOfCluster, fixture.HostedCluster("clusters"), nil},
		"When the namespace cannot be read, it should reconcile none": {(&Reconciler{Client: scopetest.Answering(c, "get .*", testenv.ErrRefused)}).poolsOfConfig,
			config("clusters-demo", "x", map[string]string{coreConfigLabel: "true"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(tc.run(t.Context(), tc.obj)).To(Equal(tc.want))
		})
	}
}
