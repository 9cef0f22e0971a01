// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics show which node holds an address.
type Metrics struct {
	held  *prometheus.GaugeVec
	taken *prometheus.CounterVec
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	return &Metrics{
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hypershift_api_virtual_ip_held",
			Help: "1 on the node that holds the virtual IP, 0 on the others.",
		}, []string{"address"}),
		taken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hypershift_api_virtual_ip_taken_total",
			Help: "How often this node began to hold the virtual IP.",
		}, []string{"address"}),
	}
}

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector { return []prometheus.Collector{m.held, m.taken} }

func (m *Metrics) set(address netip.Addr, held bool) {
	value := 0.0
	if held {
		value = 1
		m.taken.WithLabelValues(address.String()).Inc()
	}
	m.held.WithLabelValues(address.String()).Set(value)
}
