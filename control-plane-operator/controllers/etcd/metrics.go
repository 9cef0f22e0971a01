// SPDX-License-Identifier: Apache-2.0

package etcd

import "github.com/openshift/hypershift/control-plane-operator/metrics"

// Metrics holds the gauges of the members.
type Metrics struct{ *metrics.Etcd }

// take sets the gauges to what a reconcile observed. The size of a member that does not answer is unknown.
func (m *Metrics) take(namespace string, seen *cluster, disks map[string]*disk) {
	if m == nil {
		return
	}
	for _, one := range seen.members {
		labels := []string{namespace, one.pod}
		m.Healthy.WithLabelValues(labels...).Set(number(one.healthy()))
		m.Leader.WithLabelValues(labels...).Set(number(one.leads()))
		if d := disks[one.pod]; d != nil && d.p99 > 0 {
			m.Fsync.WithLabelValues(labels...).Set(d.p99.Seconds())
		}
		if one.status == nil {
			m.Size.DeleteLabelValues(labels...)
			m.InUse.DeleteLabelValues(labels...)
			continue
		}
		m.Size.WithLabelValues(labels...).Set(float64(one.status.DbSize))
		m.InUse.WithLabelValues(labels...).Set(float64(one.status.DbSizeInUse))
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
