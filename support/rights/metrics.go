// SPDX-License-Identifier: Apache-2.0

package rights

import rbacv1 "k8s.io/api/rbac/v1"

// MetricsReaderRole is for who reads the metrics of our programs; it is bound to nobody.
const MetricsReaderRole = "hypershift-metrics-reader"

// MetricsReader is what MetricsReaderRole gives.
func MetricsReader() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
}
