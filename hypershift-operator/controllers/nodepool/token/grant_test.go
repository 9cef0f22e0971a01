// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// TestGrantToken checks that the ignition-server gets access to one Secret only.
func TestGrantToken(t *testing.T) {
	w, s := inMemory(t), pass()
	s.Client = w.server
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: "token-demo-1", UID: types.UID("1")}}
	fixture.Create(t, w.server, token)
	w.Expect(s.grantToken(t.Context(), token)).To(Succeed())
	role, binding := scopetest.Read(w.t, w.server, &rbacv1.Role{}, token.Name), scopetest.Read(w.t, w.server, &rbacv1.RoleBinding{}, token.Name)
	w.Expect(cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"token-demo-1"},
		Verbs: []string{"get", "update", "patch", "delete"}}}, role.Rules)).To(BeEmpty(), "-want +got")
	w.Expect(binding.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "token-demo-1"}))
	w.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: fixture.Hosted("clusters"), Name: "ignition-server"}}))
	for _, meta := range []metav1.ObjectMeta{role.ObjectMeta, binding.ObjectMeta} {
		w.Expect(meta.Annotations).To(Equal(map[string]string{hyperv1.NodePoolAnnotation: "clusters/demo"}))
		w.Expect(meta.Labels).To(Equal(map[string]string{hyperv1.SecretGrantLabel: "ignition-server"}))
		w.Expect(meta.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "Secret"), HaveField("Name", "token-demo-1"), HaveField("UID", token.UID))))
	}
}

func TestGrantRefused(t *testing.T) {
	for _, refused := range []string{"create v1.Role clusters-demo/token-demo-1", "create v1.RoleBinding clusters-demo/token-demo-1"} {
		t.Run("When the server refuses to "+refused+", the error should name the reader of the Secret", func(t *testing.T) {
			w, s := inMemory(t), pass()
			var asked []string
			s.Client = testenv.Intercept(w.server, func(request testenv.Request) error {
				if asked = append(asked, request.String()); request.String() == refused {
					return testenv.ErrRefused
				}
				return request.Do()
			})
			token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: "token-demo-1"}}
			err := s.grantToken(t.Context(), token)
			w.Expect(err).To(And(MatchError(testenv.ErrRefused), MatchError(ContainSubstring("ignition-server")), MatchError(ContainSubstring("Secret token-demo-1"))))
			w.Expect(asked[len(asked)-1]).To(Equal(refused), "nothing comes after a failure")
		})
	}
}

// TestGrantOfNobody checks that access is not granted if the Secret cannot own the Role.
func TestGrantOfNobody(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(rbacv1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Hosted("clusters"), Name: "token-demo-1"}}
	s := pass()
	s.Client = c
	NewWithT(t).Expect(s.grantToken(t.Context(), token)).NotTo(Succeed())
	roles := &rbacv1.RoleList{}
	NewWithT(t).Expect(c.List(t.Context(), roles)).To(Succeed())
	NewWithT(t).Expect(roles.Items).To(BeEmpty())
}
