// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts the calls of one or more clients.
type Metrics struct {
	duration *prometheus.HistogramVec
	retries  *prometheus.CounterVec
}

// NewMetrics registers the metrics of MAAS calls. It panics if they are already registered.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "maas_client_request_duration_seconds",
			Help:    "Duration of calls to the MAAS API by operation and HTTP status code (\"none\" when no answer came).",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"operation", "code"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "maas_client_retries_total",
			Help: "Calls to the MAAS API that were repeated, by operation.",
		}, []string{"operation"}),
	}
	registry.MustRegister(m.Collectors()...)
	return m
}

// Collectors returns the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.duration, m.retries}
}

func (m *Metrics) observe(operation string, status int, took time.Duration) {
	if m == nil {
		return
	}
	label := "none"
	if status > 0 {
		label = strconv.Itoa(status)
	}
	m.duration.WithLabelValues(operation, label).Observe(took.Seconds())
}

func (m *Metrics) retried(operation string) {
	if m != nil {
		m.retries.WithLabelValues(operation).Inc()
	}
}
