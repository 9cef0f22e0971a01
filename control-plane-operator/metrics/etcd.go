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
		InUse:   gauge("database_in_use_bytes", "What of a member's database file holds data; the rest comes back by defragmentation."),
		Fsync:   gauge("fsync_p99_seconds", "How long it takes until 99 % of what a member must not lose is on its disk, over the last five minutes; etcd wants less than 0.01."),
	}
}

// Collectors returns the metric families.
func (e *Etcd) Collectors() []prometheus.Collector {
	return []prometheus.Collector{e.Healthy, e.Leader, e.Size, e.InUse, e.Fsync}
}
