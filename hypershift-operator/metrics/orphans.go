// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Orphans counts control planes whose HostedCluster is gone.
type Orphans struct {
	present *prometheus.GaugeVec
	removed prometheus.Counter
}

// Orphaned are the metrics of this operator.
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

// Collectors returns the collectors to register.
func (o Orphans) Collectors() []prometheus.Collector {
	return []prometheus.Collector{o.present, o.removed}
}

// Set records the state of the control plane in a namespace.
func (o Orphans) Set(namespace, state string) {
	o.Forget(namespace)
	o.present.WithLabelValues(namespace, state).Set(1)
}

// Forget removes the state of a namespace.
func (o Orphans) Forget(namespace string) {
	o.present.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
}

// Deleted counts a deleted control plane.
func (o Orphans) Deleted(namespace string) {
	o.Forget(namespace)
	o.removed.Inc()
}
