// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/metrics"
)

// transitions are the conditions of a HostedCluster whose transition time is measured.
var transitions = []hyperv1.ConditionType{hyperv1.EtcdAvailable, hyperv1.InfrastructureReady, hyperv1.ExternalDNSReachable,
	hyperv1.KubeAPIServerAvailable, hyperv1.HostedClusterAvailable}

var identityProviders = []configv1.IdentityProviderType{
	configv1.IdentityProviderTypeBasicAuth, configv1.IdentityProviderTypeGitHub, configv1.IdentityProviderTypeGitLab,
	configv1.IdentityProviderTypeGoogle, configv1.IdentityProviderTypeHTPasswd, configv1.IdentityProviderTypeKeystone,
	configv1.IdentityProviderTypeLDAP, configv1.IdentityProviderTypeOpenID, configv1.IdentityProviderTypeRequestHeader,
}

// clusterLabels identify a HostedCluster; _id is spec.clusterID.
var clusterLabels = []string{"namespace", "name", "_id"}

type clusterMetrics struct {
	snapshot *metrics.Snapshot

	count, failures, providers                   *prometheus.GaugeVec
	waiting, rollingOut, upgrading               *prometheus.GaugeVec
	deleting, resources                          *prometheus.GaugeVec
	limitedSupport, silenced, proxy, proxyCA, up *prometheus.GaugeVec
	transition                                   *prometheus.HistogramVec
}

func newClusterMetrics(s *metrics.Snapshot) *clusterMetrics {
	perCluster := func(name, help string, more ...string) *prometheus.GaugeVec {
		return s.Gauge(name, help, append(append([]string{}, clusterLabels...), more...)...)
	}
	return &clusterMetrics{
		snapshot: s,
		count:    s.Gauge("hypershift_hostedclusters", "HostedClusters by platform.", "platform"),
		failures: s.Gauge("hypershift_hostedclusters_failure_conditions",
			"HostedClusters by platform and condition that is not as it should be; not_X means that X is not True.", "platform", "condition"),
		providers: s.Gauge("hypershift_cluster_identity_providers", "HostedClusters by type of identity provider.", "identity_provider"),
		up:        perCluster("hypershift_cluster_available", "1 while the HostedCluster is Available."),
		waiting: perCluster("hypershift_cluster_waiting_initial_availability_duration_seconds",
			"Seconds since the creation of a HostedCluster that was never Available."),
		rollingOut: perCluster("hypershift_cluster_initial_rolling_out_duration_seconds",
			"Seconds since the creation of a HostedCluster that has completed no release yet."),
		upgrading: perCluster("hypershift_cluster_upgrading_duration_seconds",
			"Seconds since the start of an upgrade that is not complete.", "previous_version", "new_version"),
		deleting: perCluster("hypershift_cluster_deleting_duration_seconds", "Seconds since the deletion of a HostedCluster that is still there."),
		resources: perCluster("hypershift_cluster_guest_cloud_resources_deleting_duration_seconds",
			"Seconds since the deletion of a HostedCluster whose guest still holds resources."),
		limitedSupport: perCluster("hypershift_cluster_limited_support_enabled", "1 with the label api.openshift.com/limited-support."),
		silenced:       perCluster("hypershift_cluster_silence_alerts", "1 with the label hypershift.openshift.io/silence-cluster-alerts."),
		proxy: perCluster("hypershift_cluster_proxy", "1 when the guest has a proxy; a label is 1 where that part of it is set.",
			"proxy_http", "proxy_https", "proxy_trusted_ca"),
		proxyCA: perCluster("hypershift_cluster_proxy_ca_valid", "1 when the CA bundle of the proxy is valid; only there with a bundle."),
		transition: s.Histogram("hypershift_hosted_cluster_transition_seconds",
			"Seconds from the creation of HostedClusters until a condition is True.", transitionBuckets, "condition"),
	}
}

func (m *clusterMetrics) compute(clusters []hyperv1.HostedCluster) {
	startAtZero(m.count, m.failures, clusterFailures)
	for _, provider := range identityProviders {
		m.providers.WithLabelValues(string(provider)).Set(0)
	}
	for i := range clusters {
		hc := &clusters[i]
		m.count.WithLabelValues(string(hc.Spec.Platform.Type)).Inc()
		countFailures(m.failures, clusterFailures, hc.Spec.Platform.Type, hc.Status.Conditions)
		m.durations(hc)
		m.state(hc)
		for _, conditionType := range transitions {
			if c := meta.FindStatusCondition(hc.Status.Conditions, string(conditionType)); m.snapshot.Reached(hc, c) {
				m.transition.WithLabelValues(c.Type).Observe(c.LastTransitionTime.Sub(hc.CreationTimestamp.Time).Seconds())
			}
		}
	}
}

func labelsOf(hc *hyperv1.HostedCluster, more ...string) []string {
	return append([]string{hc.Namespace, hc.Name, hc.Spec.ClusterID}, more...)
}

// durations sets gauges that exist only while the process that they measure runs.
func (m *clusterMetrics) durations(hc *hyperv1.HostedCluster) {
	now := m.snapshot.Clock
	age := now.Since(hc.CreationTimestamp.Time).Seconds()
	if _, was := hc.Annotations[hyperv1.HasBeenAvailableAnnotation]; !was {
		m.waiting.WithLabelValues(labelsOf(hc)...).Set(age)
	}
	var history []configv1.UpdateHistory
	if hc.Status.Version != nil {
		history = hc.Status.Version.History // The newest entry comes first.
	}
	switch {
	case !completed(history):
		m.rollingOut.WithLabelValues(labelsOf(hc)...).Set(age)
	case history[0].CompletionTime == nil:
		m.upgrading.WithLabelValues(labelsOf(hc, history[1].Version, history[0].Version)...).Set(now.Since(history[0].StartedTime.Time).Seconds())
	}
	if hc.DeletionTimestamp.IsZero() {
		return
	}
	deleting := now.Since(hc.DeletionTimestamp.Time).Seconds()
	m.deleting.WithLabelValues(labelsOf(hc)...).Set(deleting)
	if !condition.IsTrue(hc.Status.Conditions, string(hyperv1.CloudResourcesDestroyed)) {
		m.resources.WithLabelValues(labelsOf(hc)...).Set(deleting)
	}
}

func completed(history []configv1.UpdateHistory) bool {
	for i := range history {
		if history[i].CompletionTime != nil {
			return true
		}
	}
	return false
}

func (m *clusterMetrics) state(hc *hyperv1.HostedCluster) {
	labels := labelsOf(hc)
	_, limited := hc.Labels[hyperv1.LimitedSupportLabel]
	_, silenced := hc.Labels[hyperv1.SilenceClusterAlertsLabel]
	m.limitedSupport.WithLabelValues(labels...).Set(one(limited))
	m.silenced.WithLabelValues(labels...).Set(one(silenced))
	m.up.WithLabelValues(labels...).Set(one(condition.IsTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable))))
	configuration := hc.Spec.Configuration
	if configuration == nil {
		configuration = &hyperv1.ClusterConfiguration{}
	}
	if configuration.OAuth != nil {
		for i := range configuration.OAuth.IdentityProviders {
			m.providers.WithLabelValues(string(configuration.OAuth.IdentityProviders[i].Type)).Inc()
		}
	}
	proxy := configuration.Proxy
	if proxy == nil {
		m.proxy.WithLabelValues(labelsOf(hc, "", "", "")...).Set(0)
		return
	}
	m.proxy.WithLabelValues(labelsOf(hc, set(proxy.HTTPProxy), set(proxy.HTTPSProxy), set(proxy.TrustedCA.Name))...).Set(1)
	if proxy.TrustedCA.Name != "" {
		m.proxyCA.WithLabelValues(labels...).Set(one(condition.IsTrue(hc.Status.Conditions, string(hyperv1.ValidProxyConfiguration))))
	}
}

// set returns a label value that shows whether a field is set. The field's value may contain a password.
func set(value string) string {
	if value == "" {
		return ""
	}
	return "1"
}
