// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of a server.
type metrics struct {
	streams prometheus.Gauge
	refused prometheus.Counter
	dials   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, p *pool) *metrics {
	m := &metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hypershift_tunnel_streams", Help: "Open connections of the API server through the tunnel.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hypershift_tunnel_refused_agents_total",
			Help: "Connections to the tunnel that were not those of an agent.",
		}),
		dials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hypershift_tunnel_dials_total",
			Help: "Connections that the API server asked for, by path (agent, direct, none) and result.",
		}, []string{"path", "result"}),
	}
	if registry == nil {
		return m
	}
	agents := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "hypershift_tunnel_agents", Help: "Connected agents.",
	}, func() float64 { return float64(len(p.all())) })
	registry.MustRegister(m.streams, m.refused, m.dials, agents)
	return m
}
