// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/protected"
	"github.com/openshift/hypershift/support/rights"
)

// protect adds the metadata policies to the API server that the tests share, and removes them when the test ends.
func protect(t *testing.T, admin client.Client) {
	t.Helper()
	g, objects := NewWithT(t), protected.Objects()
	for _, obj := range objects {
		g.Expect(admin.Create(t.Context(), obj)).To(Succeed())
	}
	t.Cleanup(func() {
		for _, obj := range objects {
			g.Expect(admin.Delete(context.WithoutCancel(t.Context()), obj)).To(Succeed())
		}
	})
}

// tenant returns a client with the tenant role in a namespace, in which a HostedCluster and a NodePool have our
// finalizer.
func tenant(t *testing.T, admin client.Client, namespace string) client.Client {
	t.Helper()
	g := NewWithT(t)
	role := "metadata-" + rights.TenantRole
	g.Expect(admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules: rights.Tenant()})).To(Succeed())
	hc, pool := fixture.HostedCluster(namespace), fixture.NodePool(namespace)
	hc.Finalizers, pool.Finalizers = []string{hyperv1.HostedClusterFinalizer}, []string{hyperv1.HostedClusterFinalizer}
	fixture.Create(t, admin, append(fixture.Inputs(namespace), hc, pool)...)
	g.Expect(admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: "tenants"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: namespace}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}})).To(Succeed())
	user := fixture.As(t, namespace, "system:authenticated")
	g.Eventually(func() error {
		return user.List(t.Context(), &hyperv1.NodePoolList{},
			client.InNamespace(namespace))
	}).WithTimeout(patience).
		Should(Succeed(), "rights take a moment to be in force")
	return user
}

func merge(patch string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(patch))
}

// TestMetadataOfATenant tries the changes of security-relevant metadata that a tenant could make with 0.1.0.
func TestMetadataOfATenant(t *testing.T) {
	const name = "metadata"
	admin := fixture.Start(t)
	user, operator := tenant(t, admin, name), fixture.AsOperator(t)
	protect(t, admin)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fixture.SSHKey}}
	for what, tc := range map[string]struct {
		obj         client.Object
		patch, says string
	}{
		"removes the finalizer of a HostedCluster": {fixture.HostedCluster(name), `{"metadata":{"finalizers":null}}`,
			"is removed by the operator"},
		"removes the finalizer of a NodePool": {fixture.NodePool(name), `{"metadata":{"finalizers":null}}`,
			"is removed by the operator"},
		"resolves a release himself": {fixture.NodePool(name),
			`{"metadata":{"annotations":{"hypershift.openshift.io/nodePoolResolvedRelease":"a evil.example/b@sha256:0"}}}`,
			"nodePoolResolvedRelease"},
		"keeps the namespace of a deleted cluster": {fixture.HostedCluster(name),
			`{"metadata":{"annotations":{"hypershift.openshift.io/skip-delete-hosted-controlplane-namespace":"true"}}}`,
			"skip-delete"},
		"rotates the provider's break-glass signer": {fixture.HostedCluster(name),
			`{"metadata":{"annotations":{"hypershift.openshift.io/rotate-signers":"sre-system-admin-signer=1"}}}`,
			"belongs to the provider"},
		"points a Secret to another tenant's cluster": {secret,
			`{"metadata":{"annotations":{"hypershift.openshift.io/cluster":"victim/demo"}}}`, "of this Secret"},
	} {
		t.Run("when a tenant "+what+", it is refused", func(t *testing.T) {
			g := NewWithT(t)
			// The API server enforces a new policy after a short delay.
			g.Eventually(func() error { return user.Patch(t.Context(), tc.obj, merge(tc.patch), client.DryRunAll) }, patience,
				50*time.Millisecond).
				Should(MatchError(And(ContainSubstring(protected.Name), ContainSubstring(tc.says))))
			g.Expect(operator.Patch(t.Context(), tc.obj, merge(tc.patch), client.DryRunAll)).To(Succeed(), "the operator may")
			g.Expect(admin.Patch(t.Context(), tc.obj, merge(tc.patch), client.DryRunAll)).To(Succeed(), "an administrator may")
		})
	}
	t.Run("when a tenant applies a manifest without finalizers, the finalizer stays", func(t *testing.T) {
		g, hc := NewWithT(t), fixture.HostedCluster(name)
		hc.Annotations = map[string]string{hyperv1.RestartDateAnnotation: "2026-11-26",
			hyperv1.RotateSignersAnnotation: "all=1"}
		gvk, err := apiutil.GVKForObject(hc, user.Scheme())
		g.Expect(err).NotTo(HaveOccurred())
		hc.SetGroupVersionKind(gvk)
		g.Expect(user.Patch(t.Context(), hc, client.Apply, client.FieldOwner("gitops"), client.ForceOwnership)).To(Succeed()) //nolint:staticcheck // The typed object has no apply configuration.
		g.Expect(hc.Finalizers).To(ConsistOf(hyperv1.HostedClusterFinalizer))
	})
	t.Run("when a tenant deletes its own objects, the operator completes the deletion", func(t *testing.T) {
		g := NewWithT(t)
		for _, obj := range []client.Object{fixture.NodePool(name), fixture.HostedCluster(name)} {
			g.Expect(user.Delete(t.Context(), obj)).To(Succeed())
			g.Expect(operator.Patch(t.Context(), obj, merge(`{"metadata":{"finalizers":null}}`))).To(Succeed())
			g.Expect(client.IgnoreNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))).To(Succeed())
		}
	})
}
