// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

var errDied = errors.New("the process died here")

// dying returns a client whose write with this number fails, before or after the write takes effect; 0 for never. It
// counts the writes in writes.
func dying(c client.Client, at int, after bool, writes *int) client.Client {
	write := func(do func() error) error {
		*writes++
		switch {
		case at == 0 || *writes < at:
			return do()
		case *writes == at && after:
			return errors.Join(do(), errDied)
		}
		return errDied
	}
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, obj, opts...) })
		},
	})
}

// handed returns all objects that the provider gets, by name.
func handed(t *testing.T, c client.Client) map[string]any {
	t.Helper()
	secrets, roles, bindings := &corev1.SecretList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	if err := errors.Join(c.List(t.Context(), secrets), c.List(t.Context(), roles), c.List(t.Context(), bindings)); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, secret := range secrets.Items {
		if secret.Namespace != "clusters" {
			all["Secret "+secret.Namespace+"/"+secret.Name] = []any{secret.Data, secret.Annotations, secret.Type}
		}
	}
	for _, role := range roles.Items {
		all["Role "+role.Namespace+"/"+role.Name] = []any{role.Rules, role.Annotations}
	}
	for _, binding := range bindings.Items {
		all["RoleBinding "+binding.Namespace+"/"+binding.Name] = []any{binding.RoleRef, binding.Subjects, binding.Annotations}
	}
	return all
}

// TestHandOverGoesOn checks that the operator may crash between any two writes, and that the next process completes
// the work.
func TestHandOverGoesOn(t *testing.T) {
	good := map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "a:b:c"}
	foreign := testCluster()
	foreign.HostedCluster.Annotations = map[string]string{hyperv1.ClusterAPIProviderMAASImage: "registry.example/another:1"}
	for name, cluster := range map[string]platform.Cluster{"our provider": testCluster(), "a third-party provider": foreign} {
		c, total := testClient(t, credentials(good)), 0
		_, err := testPlatform(&server{}).ReconcileCredentials(t.Context(), dying(c, 0, false, &total), cluster)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		want := handed(t, c)
		NewWithT(t).Expect(total).To(BeNumerically(">=", 3), "the copy, and the right to read it")
		for at := range total {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, crash at write %d, written: %t", name, at+1, after), func(t *testing.T) {
					g, c, writes := NewWithT(t), testClient(t, credentials(good)), 0
					_, err := testPlatform(&server{}).ReconcileCredentials(t.Context(), dying(c, at+1, after, &writes), cluster)
					g.Expect(err).To(MatchError(errDied))
					again := testPlatform(&server{})
					_, err = again.ReconcileCredentials(t.Context(), c, cluster)
					g.Expect(err).NotTo(HaveOccurred())
					if diff := cmp.Diff(want, handed(t, c)); diff != "" {
						t.Errorf("what is handed over (-want +got):\n%s", diff)
					}
					writes = 0
					_, err = again.ReconcileCredentials(t.Context(), dying(c, 0, false, &writes), cluster)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(writes).To(BeZero(), "a settled system writes nothing")

					writes = 0
					_ = again.DeleteCredentials(t.Context(), dying(c, at+1, after, &writes), cluster)
					g.Expect(again.DeleteCredentials(t.Context(), c, cluster)).To(Succeed())
					for left := range handed(t, c) {
						g.Expect(left).To(HavePrefix("Secret clusters-demo/"), "what is in the hosted namespace goes with that")
					}
				})
			}
		}
	}
}

// TestReadsThatFail checks the results after a failed read: nothing is reported as missing, no credentials are copied,
// and no machine is removed.
func TestReadsThatFail(t *testing.T) {
	good := map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "a:b:c"}
	slow := errors.New("etcd is slow")
	failing := func(c client.Client, fails func(key client.ObjectKey, obj client.Object) bool, lists bool) client.Client {
		return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if fails(key, obj) {
					return slow
				}
				return c.Get(ctx, key, obj, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if lists {
					return slow
				}
				return c.List(ctx, list, opts...)
			}})
	}
	is := func(namespace, name string) func(client.ObjectKey, client.Object) bool {
		return func(key client.ObjectKey, _ client.Object) bool {
			return key.Namespace == namespace && key.Name == name
		}
	}
	role := func(_ client.ObjectKey, obj client.Object) bool { _, is := obj.(*rbacv1.Role); return is }
	binding := func(_ client.ObjectKey, obj client.Object) bool { _, is := obj.(*rbacv1.RoleBinding); return is }
	never := func(client.ObjectKey, client.Object) bool { return false }
	for _, tc := range []struct {
		name  string
		fails func(client.ObjectKey, client.Object) bool
		lists bool
		says  string
	}{
		{"When the user's Secret cannot be read", is("clusters", "creds"), false, "reading the MAAS credentials in Secret clusters/creds"},
		{"When the last copy cannot be read", is(theCopy.Namespace, theCopy.Name), false, "reading the copy of the MAAS credentials in Secret hypershift/maas-credentials-clusters-demo"},
		{"When the copy of an older operator cannot be read", is("clusters-demo", mirrorName(testCluster().HostedCluster)),
			false, "Secret clusters-demo/user-creds-"},
		{"When machines cannot be listed", never, true, "listing MaasMachines of namespace clusters-demo"},
		{"When the Role cannot be read", role, false, "Role"},
		{"When the RoleBinding cannot be read", binding, false, "RoleBinding"},
	} {
		t.Run(tc.name+", it should return an error, and the next reconcile should succeed", func(t *testing.T) {
			g, c := NewWithT(t), testClient(t, credentials(good))
			_, err := testPlatform(&server{}).ReconcileCredentials(t.Context(), failing(c, tc.fails, tc.lists), testCluster())
			g.Expect(err).To(MatchError(And(ContainSubstring(tc.says), ContainSubstring("etcd is slow"))))
			_, err = testPlatform(&server{}).ReconcileCredentials(t.Context(), c, testCluster())
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	for _, tc := range []struct {
		name  string
		fails func(client.ObjectKey, client.Object) bool
		lists bool
	}{
		{"When machines cannot be listed", never, true},
		{"When the namespace cannot be read", is("", "clusters-demo"), false},
		{"When the credentials cannot be read", is("clusters", "creds"), false},
	} {
		t.Run(tc.name+", no machine should be lost", func(t *testing.T) {
			g := NewWithT(t)
			c := testClient(t, machine("m1", nil), machine("m2", func(m *infrav1.MaasMachine) { m.Spec.SystemID = ptr.To("abc") }))
			why, err := testPlatform(&server{}).OrphanedMachines(t.Context(), failing(c, tc.fails, tc.lists), testCluster())
			g.Expect(err).To(MatchError(ContainSubstring("etcd is slow")))
			g.Expect(why).To(BeEmpty())
			machines := &infrav1.MaasMachineList{}
			g.Expect(c.List(t.Context(), machines)).To(Succeed())
			g.Expect(machines.Items).To(HaveLen(2))
		})
	}
}

// TestNamesOfOthers checks that objects of other owners with the same names are neither used nor deleted.
func TestNamesOfOthers(t *testing.T) {
	for _, theirs := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: theCopy.Namespace, Name: theCopy.Name}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: theCopy.Namespace, Name: theCopy.Name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: theCopy.Namespace, Name: theCopy.Name}},
	} {
		for _, owner := range []string{"", "others/demo"} {
			t.Run(fmt.Sprintf("When a %T belongs to %q, it should be kept", theirs, owner), func(t *testing.T) {
				g, there := NewWithT(t), theirs.DeepCopyObject().(client.Object)
				if owner != "" {
					there.SetAnnotations(map[string]string{hyperv1.HostedClusterAnnotation: owner})
				}
				c := testClient(t, there, credentials(map[string]string{"MAAS_ENDPOINT": "http://m/MAAS", "MAAS_API_KEY": "a:b:c"}))
				_, err := testPlatform(&server{}).ReconcileCredentials(t.Context(), c, testCluster())
				g.Expect(err).To(MatchError(ContainSubstring(theCopy.Name)))
				g.Expect(testPlatform(&server{}).DeleteCredentials(t.Context(), c, testCluster())).To(Succeed())
				g.Expect(c.Get(t.Context(), theCopy, there)).To(Succeed())
			})
		}
	}
}
