// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/load"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

const (
	// benchClustersEnv is the variable with the number of clusters (50), with loadMachines each.
	benchClustersEnv = "BENCH_CLUSTERS"
	loadMachines     = 20
	// loadSite is the number of machines in MAAS. Those without a cluster belong to the same user and are running.
	loadSite = 1000
	// loadWatched is how long the load is measured while machines are deployed.
	loadWatched = 3 * time.Minute
)

// regionCost is the measured cost of requests to a MAAS 3.4 region. A region has as many workers as cores, but at most
// four.
var regionCost = load.Cost{Workers: 4, Request: 15 * time.Millisecond, Machine: 25 * time.Millisecond}

// site is a MAAS with many clusters. Each cluster has its own provider; all share one management cluster and its
// watches.
type site struct {
	*simulator.Simulator
	b        *testing.B
	clusters []*world
}

// BenchmarkLoad measures the load of many providers on one MAAS: while all machines are deployed, and when nothing
// changes.
func BenchmarkLoad(b *testing.B) {
	watched := setting(b, benchSettledEnv, time.Minute, time.ParseDuration)
	clusters := setting(b, benchClustersEnv, 50, strconv.Atoi)
	cfg := testenv.Start(b, crds.Infrastructure, crds.ClusterAPI)
	for b.Loop() {
		s, err := simulator.New(simulator.Options{Seed: seed(loadSite), RandomSeed: 1, Durations: lifecycle.Durations{Deploy: 24 * time.Hour}})
		if err != nil {
			b.Fatal(err)
		}
		it := &site{Simulator: s, b: b}
		endpoint := simtest.Serve(b, s)
		for _, m := range s.Machines()[clusters*loadMachines:] {
			s.Change(m.SystemID, func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "on" })
		}
		for n := range clusters {
			cluster := newWorld(b, cfg, fmt.Sprintf("clusters-%d", n), endpoint, s.Key("alice"))
			for range loadMachines {
				cluster.add()
			}
			it.clusters = append(it.clusters, cluster)
		}
		it.run(watched)
	}
}

func (s *site) run(watched time.Duration) {
	ctx, cancel := context.WithCancel(s.b.Context())
	defer cancel()
	done := make(chan error, len(s.clusters))
	g := NewWithT(s.b)
	watch, err := newSharedWatch(ctx, s.clusters[0].cfg)
	g.Expect(err).NotTo(HaveOccurred())
	for _, cluster := range s.clusters {
		go func() {
			done <- cluster.incarnate(ctx, wire{watch: watch.of(cluster.namespace)}, tempo{timing: machine.Timing{}, workers: 10, qps: 20, burst: 30})
		}()
	}
	began := time.Now()
	g.Eventually(func() int { return s.in(status.Deploying) }, 15*time.Minute, time.Second).Should(Equal(len(s.clusters) * loadMachines))
	s.b.Logf("all are being installed after %s", time.Since(began).Round(time.Second))
	s.count("moving", loadWatched)
	for _, m := range s.Machines() {
		s.Change(m.SystemID, func(m *inventory.Machine) { m.Status, m.PowerState = status.Deployed, "on" })
	}
	g.Eventually(s.unready, 15*time.Minute, 10*time.Second).Should(BeEmpty())
	s.count("settled", watched)
	s.b.ReportMetric(0, "ns/op")
	cancel()
	for range s.clusters {
		g.Expect(<-done).To(Succeed())
	}
}

func (s *site) in(wanted status.Status) int {
	n := 0
	for _, m := range s.Machines() {
		if m.Status == wanted {
			n++
		}
	}
	return n
}

func (s *site) unready() []string {
	var all []string
	for _, cluster := range s.clusters {
		all = append(all, cluster.unready()...)
	}
	return all
}

// count simulates the duration of requests for a while, and reports the total.
func (s *site) count(phase string, during time.Duration) {
	s.cost(regionCost)
	s.ResetRequests()
	<-time.After(during)
	report := s.Load.Report()
	s.cost(load.Cost{})
	s.b.ReportMetric(report.Total.CallsPerMinute, phase+"-calls/min")
	s.b.ReportMetric(report.Total.BusySecondsPerMinute, phase+"-MAAS-s/min")
	s.b.ReportMetric(report.Total.QueuedSeconds*60/report.Seconds, phase+"-queued-s/min")
	s.b.ReportMetric(float64(report.Total.Machines)*60/report.Seconds, phase+"-printed/min")
	for _, row := range report.Operations {
		s.b.Logf("%s: %s: %.1f calls and %.1f s a minute, %d machines printed", phase, row.Operation, row.CallsPerMinute, row.BusySecondsPerMinute, row.Machines)
	}
}

func (s *site) cost(c load.Cost) {
	if err := s.Load.Set(c); err != nil {
		s.b.Fatal(err)
	}
}
