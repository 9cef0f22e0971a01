// SPDX-License-Identifier: Apache-2.0

package rights

import rbacv1 "k8s.io/api/rbac/v1"

// TenantRole is the ClusterRole that an administrator binds to a tenant, in the tenant's namespace.
const TenantRole = "hypershift-tenant"

// Tenant returns the rights of a tenant in the tenant's namespace. It grants nothing in a hosted namespace: the status
// of the HostedCluster contains the tenant's view of a control plane.
func Tenant() []rbacv1.PolicyRule {
	const group = "hypershift.openshift.io"
	write := []string{"create", "update", "patch", "delete"}
	return []rbacv1.PolicyRule{
		reads(group, "hostedclusters", write...),
		reads(group, "nodepools", write...),
		of(group, "nodepools/scale", "get", "update", "patch"),
		reads("", "secrets", write...),
		reads("", "configmaps", write...),
		reads("", "events"),
		reads("events.k8s.io", "events"),
	}
}
