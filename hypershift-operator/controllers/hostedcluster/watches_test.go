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
		{"When an object points to the cluster beside it it should be that", secret("clusters", "x", pointing), demo},
		{"When an object points to another tenant's cluster it should be none", secret("elsewhere", "x", pointing), nil},
		{"When an object lives in a hosted namespace it should be the namespace's", secret("clusters-demo", "made-by-others", nil), demo},
		{"When the user's object is read by a cluster it should be that", secret("clusters", fixture.PullSecret, nil), demo},
		{"When the credentials change it should be their cluster", secret("clusters", fixture.Credentials, nil), demo},
		{"When nobody reads the user's object it should be none", secret("clusters", "unrelated", nil), nil},
		{"When a namespace has nothing to do with us it should be none", secret("elsewhere", "x", nil), nil},
		{"When a namespace does not exist it should be none", secret("nowhere", "x", nil), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(r.ownerOrReader(t.Context(), tc.obj)).To(Equal(tc.want))
		})
	}
	t.Run("When a cluster role belongs to a cluster it should be found by its labels", func(t *testing.T) {
		g := NewWithT(t)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{ownerNamespace: "clusters", ownerName: "demo"}}}
		g.Expect(ownerByLabels(t.Context(), role)).To(Equal(demo))
		g.Expect(ownerByLabels(t.Context(), &rbacv1.ClusterRole{})).To(BeEmpty())
	})
	t.Run("When a pool changes it should be its cluster", func(t *testing.T) {
		NewWithT(t).Expect(clusterOfPool(t.Context(), fixture.NodePool("clusters"))).To(Equal(demo))
	})
	t.Run("When the cluster itself is in a cluster-wide object it should not panic", func(t *testing.T) {
		NewWithT(t).Expect(r.owner(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})).To(BeEmpty())
	})
}
