// SPDX-License-Identifier: Apache-2.0

package rights

import rbacv1 "k8s.io/api/rbac/v1"

// MetricsReaderRole is the ClusterRole for reading the metrics of HyperShift's programs. The installer binds it to no
// subject.
const MetricsReaderRole = "hypershift-metrics-reader"

// MetricsReader returns the rules of MetricsReaderRole.
func MetricsReader() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
}

// PrometheusRole is the role with which a Prometheus discovers scrape targets in a namespace. It is bound in that
// namespace to OpenShift's Prometheus, if platform monitoring is enabled.
const PrometheusRole = "hypershift-prometheus"

// Prometheus returns the rules of PrometheusRole.
func Prometheus() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		reads("", "services"), reads("", "endpoints"), reads("", "pods"), reads("discovery.k8s.io", "endpointslices"),
	}
}

// PlatformPrometheus returns the service account of OpenShift's own Prometheus.
func PlatformPrometheus() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "openshift-monitoring", Name: "prometheus-k8s"}
}
