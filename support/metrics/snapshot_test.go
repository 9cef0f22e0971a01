// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/metrics/metricstest"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 500_000_000, time.UTC)

func TestSnapshot(t *testing.T) {
	t.Run("When the object of a gauge is gone, it should no longer report it", func(t *testing.T) {
		g := NewWithT(t)
		s := NewSnapshot(clocktesting.NewFakePassiveClock(start))
		gauge := s.Gauge("things", "Things.", "name")
		names := []string{"a", "b"}
		s.Compute = func(context.Context) error {
			for _, name := range names {
				gauge.WithLabelValues(name).Inc()
			}
			return nil
		}
		g.Expect(metricstest.Of(t, s)).To(Equal(metricstest.Samples{`things{name="a"}`: 1, `things{name="b"}`: 1}))
		names = []string{"b"}
		g.Expect(metricstest.Of(t, s)).To(Equal(metricstest.Samples{`things{name="b"}`: 1}))
	})
	t.Run("When the cache cannot be read, it should omit its metrics and let the rest of the scrape succeed", func(t *testing.T) {
		g := NewWithT(t)
		s := NewSnapshot(clocktesting.NewFakePassiveClock(start))
		gauge := s.Gauge("things", "Things.")
		s.Compute = func(context.Context) error {
			gauge.WithLabelValues().Set(1)
			return errors.New("the cache is not started")
		}
		other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other"})
		g.Expect(metricstest.Of(t, s, other)).To(Equal(metricstest.Samples{"other": 0}))
	})
}

func TestReached(t *testing.T) {
	condition := func(status metav1.ConditionStatus, at time.Time) *metav1.Condition {
		return &metav1.Condition{Type: "Ready", Status: status, LastTransitionTime: metav1.NewTime(at.Truncate(time.Second))}
	}
	for _, tc := range []struct {
		name string
		// scrapes holds the condition of one object at each scrape.
		scrapes []*metav1.Condition
		want    float64
	}{
		{"When a condition turned True before the process started, it should not count it", []*metav1.Condition{condition(metav1.ConditionTrue, start.Add(-time.Second))}, 0},
		{"When a condition turns True in the second of the start, it should count it", []*metav1.Condition{condition(metav1.ConditionTrue, start)}, 1},
		{"When several scrapes see a condition, it should count it once", []*metav1.Condition{nil, condition(metav1.ConditionTrue, start), condition(metav1.ConditionTrue, start)}, 1},
		{"When a condition is not True, it should not count it", []*metav1.Condition{condition(metav1.ConditionFalse, start.Add(time.Minute))}, 0},
		{"When a condition turns True again, it should count it again", []*metav1.Condition{
			condition(metav1.ConditionTrue, start), condition(metav1.ConditionFalse, start.Add(time.Minute)), condition(metav1.ConditionTrue, start.Add(time.Hour))}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewSnapshot(clocktesting.NewFakePassiveClock(start))
			histogram := s.Histogram("reached_seconds", "Seconds.", []float64{1})
			var sees *metav1.Condition
			s.Compute = func(context.Context) error {
				seconds := histogram.WithLabelValues()
				if s.Reached(&metav1.ObjectMeta{UID: "1"}, sees) {
					seconds.Observe(1)
				}
				return nil
			}
			var last metricstest.Samples
			for _, sees = range tc.scrapes {
				last = metricstest.Of(t, s)
			}
			NewWithT(t).Expect(last).To(HaveKeyWithValue("reached_seconds_count", tc.want))
		})
	}
}

func TestFamilies(t *testing.T) {
	g := NewWithT(t)
	s := NewSnapshot(clocktesting.NewFakePassiveClock(start))
	s.Gauge("a_gauge", `Says "hello", in {words}.`, "one", "two")
	s.Histogram("a_histogram", "H.", []float64{1})
	families, err := Families(s,
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "a_counter_total", Help: "C."}, []string{"code"}),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "plain_total"}),
		prometheus.NewHistogram(prometheus.HistogramOpts{Name: "plain_seconds"}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "info", ConstLabels: prometheus.Labels{"version": "1", "arch": `a"b`}}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(Equal([]Family{
		{Name: "a_gauge", Type: "gauge", Help: `Says "hello", in {words}.`, Labels: []string{"one", "two"}},
		{Name: "a_histogram", Type: "histogram", Help: "H."},
		{Name: "a_counter_total", Type: "counter", Help: "C.", Labels: []string{"code"}},
		{Name: "plain_total", Type: "counter"},
		{Name: "plain_seconds", Type: "histogram"},
		{Name: "info", Type: "gauge", Labels: []string{"arch", "version"}},
	}))
}
