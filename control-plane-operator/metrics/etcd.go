// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Etcd holds the metrics of the members of a hosted cluster's etcd.
type Etcd struct {
	// The gauges have the labels namespace and member.
	Healthy, Leader, Size, InUse, Fsync *prometheus.GaugeVec
}

// NewEtcd returns the metric families without values.
func NewEtcd() *Etcd {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hypershift_control_plane_etcd_" + name, Help: help}, []string{"namespace", "member"})
	}
	return &Etcd{
		Healthy: gauge("member_healthy", "Whether a member of etcd answers and votes."),
		Leader:  gauge("member_leader", "Whether a member of etcd leads the others."),
		Size:    gauge("database_bytes", "Size of a member's database file."),
		InUse:   gauge("database_in_use_bytes", "Size of the data in a member's database file; defragmentation frees the rest."),
		Fsync:   gauge("fsync_p99_seconds", "99th percentile of the time in which a member writes its log to disk, over the last five minutes; etcd needs less than 0.01."),
	}
}

// Collectors returns the metric families.
func (e *Etcd) Collectors() []prometheus.Collector {
	return []prometheus.Collector{e.Healthy, e.Leader, e.Size, e.InUse, e.Fsync}
}
