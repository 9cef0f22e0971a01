// SPDX-License-Identifier: Apache-2.0

package install

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/rights"
)

func (o *Options) rbac() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.namespace, Name: operatorName}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: roleName}
	}
	everywhere, here := metav1.ObjectMeta{Name: roleName}, metav1.ObjectMeta{Namespace: o.namespace, Name: roleName}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: rights.Operator(o.apis)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: everywhere, Subjects: subjects, RoleRef: ref("ClusterRole")},
		&rbacv1.Role{ObjectMeta: here, Rules: rights.OperatorNamespace()},
		&rbacv1.RoleBinding{ObjectMeta: here, Subjects: subjects, RoleRef: ref("Role")},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: rights.TenantRole, Labels: map[string]string{componentLabel: "tenant"}}, Rules: rights.Tenant()},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: rights.MetricsReaderRole}, Rules: rights.MetricsReader()},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: rights.PrometheusRole}, Rules: rights.Prometheus()},
	}
}

func (o *Options) serviceAccount() *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: operatorName}}
	if len(o.pullSecret) > 0 {
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	}
	return account
}
