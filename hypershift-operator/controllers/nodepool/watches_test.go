// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestPools(t *testing.T) {
	demo := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "clusters", Name: "demo"}}}
	pool := fixture.NodePool("clusters")
	pool.Spec.Config = []corev1.LocalObjectReference{{Name: "extra"}}
	stranger := fixture.NodePool("clusters")
	stranger.Name, stranger.Spec.ClusterName = "stranger", "other"
	hosted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(pool, stranger, hosted).Build()}
	config := func(namespace, name string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	for _, tc := range []struct {
		name string
		obj  client.Object
		want []reconcile.Request
	}{
		{"When a pool names the ConfigMap it should be that pool", config("clusters", "extra", nil), demo},
		{"When nobody names it it should be none", config("clusters", "other", nil), nil},
		{"When the control plane made it it should be the cluster's pools", config("clusters-demo", "ignition-config-fips", map[string]string{coreConfigLabel: "true"}), demo},
		{"When it is another one of the control plane it should be none", config("clusters-demo", "kas-config", nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(r.poolsOfConfig(t.Context(), tc.obj)).To(Equal(tc.want))
		})
	}
	t.Run("When the CA of the ignition-server changes it should be the cluster's pools, whose user-data holds it", func(t *testing.T) {
		g := NewWithT(t)
		ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "ignition-server-ca-cert"}}
		g.Expect(r.poolsOfSecret(t.Context(), ca)).To(Equal(demo))
		ca.Namespace = "elsewhere"
		g.Expect(r.poolsOfSecret(t.Context(), ca)).To(BeEmpty())
	})
	t.Run("When a cluster changes it should be its pools and no other", func(t *testing.T) {
		NewWithT(t).Expect(r.poolsOfCluster(t.Context(), fixture.HostedCluster("clusters"))).To(Equal(demo))
	})
	t.Run("When an object carries a pool's annotation it should be that pool", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}}}
		g.Expect(poolByAnnotation(t.Context(), secret)).To(Equal(demo))
		g.Expect(r.poolsOfSecret(t.Context(), secret)).To(Equal(demo))
		g.Expect(poolByAnnotation(t.Context(), &corev1.Secret{})).To(BeEmpty())
	})
}
