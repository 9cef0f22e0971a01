// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/openshift/hypershift/test/journey"
)

const (
	// another is the measured cluster.
	another = "another"
	// settling is how long a control plane runs before it is measured: programs release their startup memory within two
	// minutes.
	settling = 150 * time.Second
	// watching is the duration of the measurement.
	watching = time.Minute
)

// BenchmarkCluster measures what a second cluster without nodes costs a management cluster, and what its control plane
// uses while it is idle.
func BenchmarkCluster(b *testing.B) {
	if _, err := os.Stat("../../bin/images/oci"); err != nil {
		b.Skip("needs the images of the embedded environment: make environment")
	}
	s := start(b)
	s.must(b, s.Install(b.Context()))
	s.costly(b, "first")
	before := s.Memory()
	for b.Loop() {
		s.costly(b, another)
	}
	b.ReportMetric(float64(s.Memory()-before)/(1<<20), "MiB/cluster")
	s.steady(b)
}

// costly creates a cluster without nodes, and waits until its use of resources is stable.
func (s *suite) costly(b *testing.B, name string) {
	b.Helper()
	s.must(b, s.CreateCluster(b.Context(), name, 0))
	s.reach(b, journey.StageAvailable, 8*time.Minute, journey.ClusterAvailable(s.c, name))
	pass(b, settling)
}

// steady reports what each component uses in one minute.
func (s *suite) steady(b *testing.B) {
	b.Helper()
	before, err := s.Costs(b.Context(), another)
	s.must(b, err)
	pass(b, watching)
	after, err := s.Costs(b.Context(), another)
	s.must(b, err)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		now, was := after[name], before[name]
		s.Say("%-32s %4d MiB %6d ms of a processor a minute %6d KiB written a minute", name, now.Memory>>20,
			(now.Processor - was.Processor).Milliseconds(), (now.Written-was.Written)>>10)
		b.ReportMetric(float64(now.Memory)/(1<<20), name+"-MiB")
		b.ReportMetric(float64((now.Processor - was.Processor).Milliseconds()), name+"-ms/min")
		b.ReportMetric(float64(now.Written-was.Written)/(1<<10), name+"-KiB/min")
	}
}

// pass waits for the duration of the measurement.
func pass(b *testing.B, span time.Duration) {
	b.Helper()
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.Context().Done():
	}
}
