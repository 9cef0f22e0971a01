// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/upsert"
)

// grantToken allows the ignition-server to read a token, rotate it, report the result of rendering, and delete an
// expired one.
func (s Secrets) grantToken(ctx context.Context, token *corev1.Secret) error {
	return s.grant(ctx, token, hosted.IgnitionServer, "get", "update", "patch", "delete")
}

// grant allows one service account of the control plane namespace to use one Secret. The Role names the Secret, because
// access to all Secrets would include the keys of the control plane. The Secret owns the Role and RoleBinding. The
// ignition-server finds its tokens by these Roles.
func (s Secrets) grant(ctx context.Context, secret *corev1.Secret, account string, verbs ...string) error {
	named := metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}
	role, binding := &rbacv1.Role{ObjectMeta: named}, &rbacv1.RoleBinding{ObjectMeta: named}
	claim := func(obj client.Object) error {
		scope.Annotate(obj, hyperv1.NodePoolAnnotation, s.Key())
		obj.SetLabels(map[string]string{hyperv1.SecretGrantLabel: account})
		return controllerutil.SetOwnerReference(secret, obj, s.Client.Scheme())
	}
	_, err := upsert.Object(ctx, s.Client, role, func() error {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret.Name}, Verbs: verbs}}
		return claim(role)
	})
	if err == nil {
		_, err = upsert.Object(ctx, s.Client, binding, func() error {
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
			binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: secret.Namespace, Name: account}}
			return claim(binding)
		})
	}
	if err != nil {
		return fmt.Errorf("granting %s access to Secret %s: %w", account, secret.Name, err)
	}
	return nil
}
