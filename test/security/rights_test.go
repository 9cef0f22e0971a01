// SPDX-License-Identifier: Apache-2.0

package security

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/rights"
)

func TestNoStars(t *testing.T) {
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"operator": rights.Operator(management.Groups()), "operator in its namespace": rights.OperatorNamespace(), "tenant": rights.Tenant(), "virtual IP": rights.VirtualIP(),
	} {
		t.Run("When the rights of "+name+" are given, each should be named", func(t *testing.T) {
			for _, rule := range rules {
				for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
					if slices.Contains(list, "*") || len(list) == 0 {
						t.Errorf("%+v", rule)
					}
				}
			}
		})
	}
}

// TestOperatorEscalatesByNameOnly checks that the operator can grant permissions that it does not have, but only with
// three names.
func TestOperatorEscalatesByNameOnly(t *testing.T) {
	admin, operator := fixture.Start(t), fixture.AsOperator(t)
	g := NewWithT(t)
	g.Expect(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "escalation"}})).To(Succeed())
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "escalation", Name: name} }
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	for what, obj := range map[string]client.Object{
		"a Role with another name":     &rbacv1.Role{ObjectMeta: meta("mine"), Rules: all},
		"a ClusterRole":                &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Rules: all},
		"cluster-admin":                &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, RoleRef: ref},
		"cluster-admin in a namespace": &rbacv1.RoleBinding{ObjectMeta: meta("control-plane-operator"), RoleRef: ref},
		"a pod":                        &corev1.Pod{ObjectMeta: meta("mine"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
		"another service account":      &corev1.ServiceAccount{ObjectMeta: meta("mine")},
	} {
		t.Run("When the operator creates "+what+", it should be refused", func(t *testing.T) {
			err := operator.Create(t.Context(), obj)
			NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		})
	}
}

func TestTenantRole(t *testing.T) {
	admin := fixture.Start(t)
	g := NewWithT(t)
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}
	g.Expect(admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: rights.TenantRole}, Rules: rights.Tenant()})).To(Succeed())
	for _, name := range []string{"alices", "alices-demo", "bobs", "kube-system"} {
		err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	}
	g.Expect(admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "alices", Name: "tenants"}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rights.TenantRole}})).To(Succeed())
	alice := fixture.As(t, "alice", "system:authenticated")
	g.Eventually(func() error { return alice.List(t.Context(), &corev1.EventList{}, client.InNamespace("alices")) }).WithTimeout(patience).
		Should(Succeed(), "rights take a moment to be in force")
	objects := func(namespace string) []client.Object {
		return append(fixture.Inputs(namespace), fixture.HostedCluster(namespace), fixture.NodePool(namespace))
	}
	t.Run("When a tenant creates a cluster in its namespace, it should be able to manage and delete it", func(t *testing.T) {
		g := NewWithT(t)
		for _, obj := range objects("alices") {
			if _, is := obj.(*corev1.Namespace); is {
				continue
			}
			g.Expect(alice.Create(t.Context(), obj)).To(Succeed())
			obj.SetLabels(map[string]string{"mine": "true"})
			g.Expect(alice.Update(t.Context(), obj)).To(Succeed())
		}
		g.Expect(alice.List(t.Context(), &corev1.EventList{}, client.InNamespace("alices"))).To(Succeed())
		for _, obj := range objects("alices") {
			if _, is := obj.(*corev1.Namespace); !is {
				g.Expect(alice.Delete(t.Context(), obj)).To(Succeed())
			}
		}
	})
	for _, namespace := range []string{"alices-demo", "bobs", "kube-system"} {
		t.Run("When a tenant accesses namespace "+namespace+", it should see and create nothing", func(t *testing.T) {
			g := NewWithT(t)
			for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}, &hyperv1.HostedClusterList{}, &hyperv1.HostedControlPlaneList{}} {
				g.Expect(apierrors.IsForbidden(alice.List(t.Context(), list, client.InNamespace(namespace)))).To(BeTrue(), "%T", list)
			}
			for _, obj := range objects(namespace) {
				g.Expect(apierrors.IsForbidden(alice.Create(t.Context(), obj))).To(BeTrue(), "%T", obj)
			}
		})
	}
	t.Run("When a tenant creates anything else in its own namespace, it should be forbidden", func(t *testing.T) {
		for _, obj := range []client.Object{
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "alices", Name: "x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
			&hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "alices", Name: "x"}},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "alices", Name: "x"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "more"}},
		} {
			NewWithT(t).Expect(apierrors.IsForbidden(alice.Create(t.Context(), obj))).To(BeTrue(), "%T", obj)
		}
	})
}
