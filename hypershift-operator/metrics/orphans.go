// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Orphans counts control planes whose HostedCluster is gone.
type Orphans struct {
	present *prometheus.GaugeVec
	removed prometheus.Counter
}

// Orphaned are the counts of this operator.
var Orphaned = Orphans{
	present: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hypershift_orphaned_control_planes",
		Help: "Namespaces of control planes whose HostedCluster is gone, by what the operator does: waiting, deleting, paused, kept or unproven.",
	}, []string{"namespace", "state"}),
	removed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "hypershift_orphaned_control_planes_deleted_total",
		Help: "Control planes that the operator deleted after their HostedCluster had gone without its finalizer.",
	}),
}

// Collectors are what to register.
func (o Orphans) Collectors() []prometheus.Collector {
	return []prometheus.Collector{o.present, o.removed}
}

// Set says what the operator does about the control plane in a namespace.
func (o Orphans) Set(namespace, state string) {
	o.Forget(namespace)
	o.present.WithLabelValues(namespace, state).Set(1)
}

// Forget drops what was said of a namespace.
func (o Orphans) Forget(namespace string) {
	o.present.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
}

// Deleted counts a control plane that was deleted.
func (o Orphans) Deleted(namespace string) {
	o.Forget(namespace)
	o.removed.Inc()
}
