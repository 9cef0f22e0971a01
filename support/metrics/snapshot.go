// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the common parts of the programs' own metrics. These are gauges that are computed from a cache
// at each scrape, and the description of all families for the reference page.
package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/logging"
)

// scrapeTimeout is shorter than the scrape timeout of Prometheus. It ends a scrape that waits for a cache that is not
// filled yet.
const scrapeTimeout = 5 * time.Second

// Snapshot is a collector of gauges that report the current state. Between two scrapes it does nothing.
type Snapshot struct {
	// Compute sets the gauges from objects in a cache. The gauges are empty when it starts.
	Compute func(ctx context.Context) error
	// Clock provides the current time.
	Clock clock.PassiveClock

	start      time.Time
	gauges     []*prometheus.GaugeVec
	histograms []*prometheus.HistogramVec

	mu sync.Mutex
	// before and now hold the times at which existing objects reached conditions, as of the last scrape and of this
	// one.
	before, now map[moment]bool
}

// moment is the time at which an object reached a condition.
type moment struct {
	object    types.UID
	condition string
	at        time.Time
}

// NewSnapshot returns a collector without families.
func NewSnapshot(clock clock.PassiveClock) *Snapshot {
	// Times in the API have a resolution of one second.
	return &Snapshot{Clock: clock, start: clock.Now().Truncate(time.Second)}
}

// Gauge adds a family of gauges.
func (s *Snapshot) Gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	s.gauges = append(s.gauges, gauge)
	return gauge
}

// Histogram adds a family of histograms, which accumulate from scrape to scrape.
func (s *Snapshot) Histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	histogram := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	s.histograms = append(s.histograms, histogram)
	return histogram
}

// Collectors returns the families.
func (s *Snapshot) Collectors() []prometheus.Collector {
	var all []prometheus.Collector
	for _, gauge := range s.gauges {
		all = append(all, gauge)
	}
	for _, histogram := range s.histograms {
		all = append(all, histogram)
	}
	return all
}

// Describe implements prometheus.Collector.
func (s *Snapshot) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.Collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector. While the cache cannot be read, it returns no values. An error would fail
// the scrape, and with it the other metrics of the process.
func (s *Snapshot) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	for _, gauge := range s.gauges {
		gauge.Reset()
	}
	s.now = map[moment]bool{}
	if err := s.Compute(ctx); err != nil {
		ctrl.Log.WithName("metrics").V(logging.Writes).Info("There are no values to scrape yet", "error", err.Error())
		return
	}
	s.before = s.now
	for _, c := range s.Collectors() {
		c.Collect(ch)
	}
}

// Reached reports whether an object has reached a condition since the process started. It returns true only once for
// each transition. The previous process has counted earlier transitions.
func (s *Snapshot) Reached(obj metav1.Object, c *metav1.Condition) bool {
	if c == nil || c.Status != metav1.ConditionTrue {
		return false
	}
	at := moment{obj.GetUID(), c.Type, c.LastTransitionTime.Time}
	s.now[at] = true
	return !s.before[at] && !at.at.Before(s.start)
}
