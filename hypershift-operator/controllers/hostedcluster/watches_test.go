// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestOwners(t *testing.T) {
	demo := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "clusters", Name: "demo"}}}
	pointing := map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}
	hosted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: pointing,
		Labels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: "true"}}}
	r := &Reconciler{Platforms: fixture.Platforms(nil), Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).
		WithObjects(hosted, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}, fixture.HostedCluster("clusters")).Build()}
	secret := func(namespace, name string, annotations map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}}
	}
	for _, tc := range []struct {
		name string
		obj  client.Object
		want []reconcile.Request
	}{
		{"When an object names a cluster in its namespace, it should reconcile that cluster", secret("clusters", "x", pointing), demo},
		{"When an object names the cluster of another tenant, it should reconcile no cluster", secret("elsewhere", "x", pointing), nil},
		{"When an object is in a hosted namespace, it should reconcile the cluster of the namespace", secret("clusters-demo", "made-by-others", nil), demo},
		{"When a cluster reads an object of the user, it should reconcile that cluster", secret("clusters", fixture.PullSecret, nil), demo},
		{"When platform credentials change, it should reconcile the cluster that uses them", secret("clusters", fixture.Credentials, nil), demo},
		{"When no cluster reads an object, it should reconcile no cluster", secret("clusters", "unrelated", nil), nil},
		{"When the namespace has no cluster, it should reconcile no cluster", secret("elsewhere", "x", nil), nil},
		{"When the namespace does not exist, it should reconcile no cluster", secret("nowhere", "x", nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(r.ownerOrReader(t.Context(), tc.obj)).To(Equal(tc.want))
		})
	}
	t.Run("When a ClusterRole belongs to a cluster, it should find the cluster by its labels", func(t *testing.T) {
		g := NewWithT(t)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{cluster.OwnerNamespace: "clusters", cluster.OwnerName: "demo"}}}
		g.Expect(cluster.RequestByLabels(t.Context(), role)).To(Equal(demo))
		g.Expect(cluster.RequestByLabels(t.Context(), &rbacv1.ClusterRole{})).To(BeEmpty())
	})
	t.Run("When a NodePool changes, it should reconcile its cluster", func(t *testing.T) {
		NewWithT(t).Expect(clusterOfPool(t.Context(), fixture.NodePool("clusters"))).To(Equal(demo))
	})
	t.Run("When a cluster-wide object has no annotation, it should not panic", func(t *testing.T) {
		NewWithT(t).Expect(r.owner(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})).To(BeEmpty())
	})
}
