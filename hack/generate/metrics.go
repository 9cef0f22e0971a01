// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	provider "github.com/openshift/hypershift/cluster-api-provider-maas/metrics"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/csrapproval"
	controlplane "github.com/openshift/hypershift/control-plane-operator/metrics"
	operator "github.com/openshift/hypershift/hypershift-operator/metrics"
	"github.com/openshift/hypershift/hypershift-operator/virtualip"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/informers"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/undecodable"
)

const metricsPath = "docs/reference/metrics.md"

const metricsHeader = `<!-- Made by ` + "`make generate`" + ` from what the programs register; do not edit. -->
# Metrics

The metrics of each program, besides those of controller-runtime, the Kubernetes client and Go (` + "`controller_runtime_*`, `workqueue_*`, `rest_client_*`, `go_*`" + `).
The metrics ` + "`hypershift_*`" + ` of the operator have the names and labels of HyperShift, so that its dashboards and alerts work here: 24 of its 30.
The other six do not apply here. ` + "`hypershift_cluster_invalid_aws_creds`, `hypershift_cluster_invalid_gcp_creds` and `hypershift_cluster_acr_pull_identity_configured`" + `
are of other clouds. ` + "`hypershift_cluster_size_override_instances`" + ` counts an annotation that has no effect. ` + "`hypershift_etcd_manual_intervention_required`" + ` reports a
recovery job that does not run here. ` + "`hypershift_cluster_proxy_ca_expiry_timestamp`" + ` would have each scrape read ConfigMaps. ` + "`hypershift_cluster_available`" + ` is ours. All are computed from the
cache at each scrape; a scrape makes no API call. Histograms count what happens since the process started.
` + "`hypershift install --monitoring`" + ` installs [alerts and dashboards](../how-to/monitoring.md) that use them.

All of them serve by TLS, with a certificate that they sign themselves, and only to service accounts that may ` + "`get /metrics`" + ` in the management cluster. Bind the
ClusterRole ` + "`hypershift-metrics-reader`" + `, which ` + "`hypershift install`" + ` makes, to your Prometheus. NetworkPolicies let in namespaces with the label
` + "`network.openshift.io/policy-group=monitoring`" + `. A scrape is configured as

` + "```yaml" + `
# configuration of Prometheus
scheme: https
authorization: {credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token}
tls_config: {insecure_skip_verify: true} # a certificate that a program signed itself proves nothing
` + "```" + `

Another MAAS provider than the one of this product, and the operators of an OpenShift payload, serve as they do upstream.

ServiceMonitors, PodMonitors and recording rules are made under HyperShift's names where their kinds are served (group monitoring.coreos.com, by a Prometheus operator or by [minimal CRDs](../how-to/openshift.md#monitoring-kinds)). ` + "`hypershift install`" + ` makes those of the
operator. Each hosted namespace has those of control-plane-operator and provider and, with a Kubernetes payload, of etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
hosted-cluster-config-operator, ignition-server and cluster-autoscaler. They select no other namespace, and set the label ` + "`_id`" + ` to the cluster's ID. Those of control planes come by themselves when a
Prometheus operator comes later; for the operator's own run ` + "`hypershift install`" + ` again. ` + "`--metrics-set Telemetry`" + `, the default, keeps what the rules and the examples read of etcd and of the three programs of
Kubernetes; ` + "`SRE`" + ` and ` + "`All`" + ` keep everything with a Kubernetes payload. The annotation ` + "`hypershift.openshift.io/disable-monitoring-services`" + ` of a HostedCluster leaves its monitors out.

| what is recorded | rule |
|---|---|
| of all clusters (PrometheusRule ` + "`metrics`" + `) | ` + "`platform:hypershift_hostedclusters:max`, `platform:hypershift_nodepools:max`, `cluster_name:hypershift_nodepools_size:sum`, `cluster_name:hypershift_nodepools_available_replicas:sum`, `hypershift:operator:component_api_requests_total`, `hypershift:apiserver_request_total:read`, `:write`, `:client`, `hypershift:apiserver_request_aborts_total`, `hypershift:controlplane:component_api_requests_total`, `component_memory_usage`, `component_memory_rss`, `component_memory_request`, `component_cpu_usage_seconds`, `component_cpu_request`, `ign_payload_generation_seconds_p90`" + ` |
| of one with a Kubernetes payload (` + "`recording-rules`" + `) | ` + "`instance:etcd_object_counts:sum`, `code:apiserver_request_total:rate:sum`, `cluster:apiserver_current_inflight_requests:sum:max_over_time:2m`, `cluster:kube_persistentvolume_plugin_type_counts:sum`, `instance:etcd_mvcc_db_total_size_in_bytes:sum`, `instance:etcd_mvcc_db_total_size_in_use_in_bytes:sum`, `instance:etcd_disk_wal_fsync_duration_seconds:histogram_quantile`, `instance:etcd_disk_backend_commit_duration_seconds:histogram_quantile`, `instance:etcd_network_peer_round_trip_time_seconds:histogram_quantile`" + ` |

The rules ` + "`hypershift:controlplane:component_*`" + ` need kube-state-metrics to export the label hypershift.openshift.io/control-plane-component of pods. The expressions are our own and may differ from HyperShift's.

What the programs log is on [another page](logging.md).
`

// program is a program that registers metrics.
type program struct {
	name, where string
	collectors  []prometheus.Collector
}

func programs() []program {
	now := clock.RealClock{}
	calls := slices.Clip(maas.NewMetrics(prometheus.NewRegistry()).Collectors())
	return []program{
		{"hypershift-operator", "port 9000", append(append(calls, operator.Orphaned.Collectors()...), operator.New(nil, now),
			operator.Info("", "", ""))},
		{"virtual-ip", "port 9466 of each node, where `hypershift install --api-virtual-ip` has nodes hold addresses", virtualip.NewMetrics().Collectors()},
		{"cluster-api-provider-maas", "port 8080 (`--metrics-bind-addr`), one in each hosted namespace", append(calls, provider.New(nil, now))},
		{"control-plane-operator", "port 8080, with a Kubernetes payload", append(append(controlplane.NewEtcd().Collectors(), controlplane.NewEtcdBackup().Collectors()...), controlplane.New(nil, "", now))},
		{"hosted-cluster-config-operator", "port 8080, with a Kubernetes payload", csrapproval.Collectors()},
		{"ignition-server", "port 8080", token.Collectors()},
		{"Every program with controllers", "the ports above, virtual-ip excepted",
			[]prometheus.Collector{informers.NewMetric(), undecodable.NewMetric()}},
	}
}

// metricsPage generates docs/reference/metrics.md.
func metricsPage(generator) ([]file, error) {
	var page strings.Builder
	page.WriteString(metricsHeader)
	for _, p := range programs() {
		families, err := metrics.Families(p.collectors...)
		if err != nil {
			return nil, fmt.Errorf("describing the metrics of %s: %w", p.name, err)
		}
		slices.SortFunc(families, func(a, b metrics.Family) int { return strings.Compare(a.Name, b.Name) })
		fmt.Fprintf(&page, "\n## %s\n\nAt `/metrics` of %s.\n\n| metric | type | labels | |\n|---|---|---|---|\n", p.name, p.where)
		for _, f := range families {
			labels := ""
			if len(f.Labels) > 0 {
				labels = "`" + strings.Join(f.Labels, "`, `") + "`"
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, labels, f.Help)
		}
	}
	return []file{{path: metricsPath, data: []byte(page.String())}}, nil
}
