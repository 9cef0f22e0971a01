// SPDX-License-Identifier: Apache-2.0

package token

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ign_server_get_request",
		Help: "Node configurations served, by NodePool.",
	}, []string{"nodePool"})
	cachedTokens = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ign_server_payload_cache_total",
		Help: "Tokens that a node configuration is held for.",
	})
	rotations = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ign_server_token_rotation_total",
		Help: "Tokens that were rotated.",
	})
	misses = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ign_server_payload_cache_miss_total",
		Help: "Requests with a token that no node configuration is held for.",
	})
	refusals = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ign_server_node_refusals_total",
		Help: "Requests of running nodes, by their certificates, that were refused.",
	})
	generationSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "ign_server_payload_generation_seconds",
		Help:    "Time to render one node configuration.",
		Buckets: []float64{5, 15, 30, 45, 60},
	})
)

func init() {
	metrics.Registry.MustRegister(Collectors()...)
}

// Collectors returns the metrics of the ignition-server.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{requests, cachedTokens, rotations, misses, refusals, generationSeconds}
}

// Missed counts a request whose token is not in the cache.
func (r *Reconciler) Missed() { misses.Inc() }

// Refused counts a request with a rejected certificate.
func (r *Reconciler) Refused() { refusals.Inc() }
