// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// EtcdBackup holds the metrics of the backups of a hosted cluster.
type EtcdBackup struct {
	// LastGood and Size have the label namespace.
	LastGood, Size *prometheus.GaugeVec
}

// NewEtcdBackup returns the metric families without values.
func NewEtcdBackup() *EtcdBackup {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_control_plane_etcd_backup_" + name, Help: help}, []string{"namespace"})
	}
	return &EtcdBackup{
		LastGood: gauge("last_success_timestamp_seconds", "When the last good backup of the control plane was completed, in seconds since 1970."),
		Size:     gauge("last_success_bytes", "Size of the last good backup of the control plane, as it is stored."),
	}
}

// Collectors returns the metric families.
func (e *EtcdBackup) Collectors() []prometheus.Collector {
	return []prometheus.Collector{e.LastGood, e.Size}
}

// Take sets the gauges to the last successful backup, which is nil if there is none.
func (e *EtcdBackup) Take(namespace string, good *hyperv1.HCPEtcdBackup) {
	switch {
	case e == nil:
	case good == nil || good.Status.CompletionTime == nil:
		e.LastGood.DeleteLabelValues(namespace)
		e.Size.DeleteLabelValues(namespace)
	default:
		e.LastGood.WithLabelValues(namespace).Set(float64(good.Status.CompletionTime.Unix()))
		e.Size.WithLabelValues(namespace).Set(float64(good.Status.Size))
	}
}
