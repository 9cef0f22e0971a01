// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import "github.com/prometheus/client_golang/prometheus"

// States of a control plane whose HostedCluster is gone.
const (
	stateWaiting  = "waiting"
	stateDeleting = "deleting"
	statePaused   = "paused"
	stateKept     = "kept"
	stateUnproven = "unproven"
)

// orphanMetrics count control planes whose HostedCluster is gone.
type orphanMetrics struct {
	present *prometheus.GaugeVec
	removed prometheus.Counter
}

var orphanCounts = orphanMetrics{
	present: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hypershift_orphaned_control_planes",
		Help: "Namespaces of control planes whose HostedCluster is gone, by what the operator does: waiting, deleting, paused, kept or unproven.",
	}, []string{"namespace", "state"}),
	removed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hypershift_orphaned_control_planes_deleted_total",
		Help: "Control planes that the operator deleted after their HostedCluster had gone without its finalizer.",
	}),
}

// OrphanCollectors are the metrics of the janitor.
func OrphanCollectors() []prometheus.Collector {
	return []prometheus.Collector{orphanCounts.present, orphanCounts.removed}
}

func (m orphanMetrics) set(namespace, state string) {
	m.forget(namespace)
	m.present.WithLabelValues(namespace, state).Set(1)
}

func (m orphanMetrics) forget(namespace string) {
	m.present.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
}

func (m orphanMetrics) deleted(namespace string) {
	m.forget(namespace)
	m.removed.Inc()
}
