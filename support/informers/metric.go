// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric reports for each cache whether it is in sync with the API server. It is computed at each scrape.
type Metric struct {
	mu    sync.Mutex
	sets  map[string]*Set
	gauge *prometheus.GaugeVec
}

// NewMetric returns a Metric without caches.
func NewMetric() *Metric {
	return &Metric{sets: map[string]*Set{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hypershift_cache_synced",
		Help: "1 if the program's cache of a kind has the state of the API server, 0 if it is stale or cannot be filled.",
	}, []string{"cluster", "kind"})}
}

// Add adds the caches of a cluster. It replaces those that were added for the cluster before.
func (m *Metric) Add(cluster string, set *Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets[cluster] = set
}

// Collectors returns the metric families.
func (m *Metric) Collectors() []prometheus.Collector { return []prometheus.Collector{m.gauge} }

// Describe implements prometheus.Collector.
func (m *Metric) Describe(ch chan<- *prometheus.Desc) { m.gauge.Describe(ch) }

// Collect implements prometheus.Collector.
func (m *Metric) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gauge.Reset()
	for cluster, set := range m.sets {
		failing := map[string]bool{}
		for _, i := range set.list() {
			if !i.IsStopped() {
				failing[i.gvk.Kind] = failing[i.gvk.Kind] || i.problem(set.clock.Now()) != nil
			}
		}
		for kind, fails := range failing {
			value := 1.0
			if fails {
				value = 0
			}
			m.gauge.WithLabelValues(cluster, kind).Set(value)
		}
	}
	m.gauge.Collect(ch)
}
