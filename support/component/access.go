// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const roleFile = "role.yaml"

// access returns the service account of a component with a Role, and the binding that gives it the Role; nothing
// without a Role.
func (c *Component) access(auxiliary []string) []client.Object {
	if !slices.Contains(auxiliary, roleFile) {
		return nil
	}
	named := metav1.ObjectMeta{Name: c.Name}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: named},
		&rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: c.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: c.Name}},
		},
	}
}
