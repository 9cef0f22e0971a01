// SPDX-License-Identifier: Apache-2.0

package rights

import rbacv1 "k8s.io/api/rbac/v1"

// MetricsReaderRole is for who reads the metrics of our programs; it is bound to nobody.
const MetricsReaderRole = "hypershift-metrics-reader"

// MetricsReader is what MetricsReaderRole gives.
func MetricsReader() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
}

// PrometheusRole is for a Prometheus that looks for what to scrape in a namespace; it is bound there, to OpenShift's, where monitoring by
// the platform is asked for.
const PrometheusRole = "hypershift-prometheus"

// Prometheus is what PrometheusRole gives.
func Prometheus() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		reads("", "services"), reads("", "endpoints"), reads("", "pods"), reads("discovery.k8s.io", "endpointslices"),
	}
}

// PlatformPrometheus is the service account of OpenShift's own Prometheus.
func PlatformPrometheus() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "openshift-monitoring", Name: "prometheus-k8s"}
}
