// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// These environment variables set the number of machines, and how long the benchmark observes the settled provider.
const (
	benchMachinesEnv = "BENCH_MACHINES"
	benchSettledEnv  = "BENCH_SETTLED"
)

// counter counts the calls that pass through it.
type counter struct {
	next http.RoundTripper
	mu   sync.Mutex
	// reads and writes count the calls by HTTP method; lists counts the polls that all machines share.
	reads, writes, lists int
	// seen is the number of writes that pause has reported.
	seen int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && (query.Has("owner") || query.Has("status")):
		c.lists++
	case r.Method == http.MethodGet:
		c.reads++
	default:
		c.writes++
	}
	c.mu.Unlock()
	return c.next.RoundTrip(r)
}

func (c *counter) take() (reads, writes, lists int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reads, writes, lists = c.reads, c.writes, c.lists
	c.reads, c.writes, c.lists, c.seen = 0, 0, 0, 0
	return reads, writes, lists
}

// pause returns the number of writes since its last call.
func (c *counter) pause() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.writes - c.seen
	c.seen = c.writes
	return n
}

// seed returns the data of a MAAS with n equal machines.
func seed(n int) []byte {
	var machines []map[string]any
	for i := range n {
		machines = append(machines, map[string]any{
			"system_id": fmt.Sprintf("m%05d", i), "hostname": fmt.Sprintf("node-%d", i), "cpu_count": 4, "memory": 8192, "power_type": "ipmi",
			"interface_set": []any{map[string]any{"name": "eth0", "mac_address": fmt.Sprintf("52:54:00:00:%02x:%02x", i/256, i%256),
				"links": []any{map[string]any{"mode": "auto", "subnet": 1}}}},
			"physicalblockdevice_set": []any{map[string]any{"name": "sda", "size": 80000000000}},
		})
	}
	text, err := json.Marshal(map[string]any{
		"zones":          []any{map[string]any{"id": 1, "name": "default"}},
		"resourcepools":  []any{map[string]any{"id": 0, "name": "default"}},
		"domains":        []any{map[string]any{"id": 0, "name": "maas", "is_default": true}},
		"fabrics":        []any{map[string]any{"id": 0, "name": "fabric-0", "vlans": []any{map[string]any{"id": 1, "vid": 0, "name": "untagged", "fabric_id": 0}}}},
		"subnets":        []any{map[string]any{"id": 1, "name": "net", "cidr": "10.0.0.0/16", "gateway_ip": "10.0.0.1", "vlan": map[string]any{"id": 1}}},
		"boot_resources": []any{map[string]any{"id": 3, "type": "Synced", "name": "ubuntu/noble", "architecture": "amd64/ga-24.04"}},
		"machines":       machines,
	})
	if err != nil {
		panic(err) // Maps and strings can always be encoded.
	}
	return text
}

// region runs a simulated MAAS in which every operation completes immediately.
func region(t testing.TB, machines int, rules ...faults.Rule) (endpoint, key string) {
	t.Helper()
	s := simulated(t, machines, rules...)
	return simtest.Serve(t, s), s.Key("alice")
}

// simulated creates a simulated MAAS without a server.
func simulated(t testing.TB, machines int, rules ...faults.Rule) *simulator.Simulator {
	t.Helper()
	s, err := simulator.New(simulator.Options{Seed: seed(machines), RandomSeed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		simtest.Fault(t, s, rule)
	}
	return s
}

func setting[T any](t testing.TB, name string, otherwise T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// TestSimulator runs the lifecycle of machines against the simulator as a plain user. First MAAS is unavailable for a
// while, then one machine fails to deploy and one breaks.
func TestSimulator(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	endpoint, key := region(t, 12,
		faults.Rule{Kind: faults.DeployFails, Machine: "m00000", Count: 5},
		faults.Rule{Kind: faults.BrokenOnDeploy, Machine: "m00001", Count: 1},
		faults.Rule{Kind: faults.Error, Status: http.StatusServiceUnavailable, For: faults.Duration(3 * time.Second)})
	s := newWorld(t, cfg, testNamespace, endpoint, key)
	for range 10 {
		s.add()
	}
	s.converge(wire{}, hasty, patience)
	failed := 0
	for _, m := range s.machines() {
		s.Expect(*m.Spec.SystemID).NotTo(BeElementOf("m00000", "m00001"))
		failed += int(m.Status.Attempts)
		s.remove(m)
	}
	s.Expect(failed).To(BeNumerically(">=", 2), "both bad machines were tried, marked and replaced")
	s.converge(wire{}, hasty, patience)
	s.Expect(s.machines()).To(BeEmpty())
}

// BenchmarkMachines runs machines from Pending to Deployed to deleted, with the timing of production. BENCH_MACHINES
// (default 1000) sets their number. BENCH_SETTLED (default 1m) sets how long the benchmark observes the settled
// provider.
func BenchmarkMachines(b *testing.B) {
	n := setting(b, benchMachinesEnv, 1000, strconv.Atoi)
	watched := setting(b, benchSettledEnv, time.Minute, time.ParseDuration)
	cfg := testenv.Start(b, crds.Infrastructure, crds.ClusterAPI)
	for b.Loop() {
		endpoint, key := region(b, n)
		s := newWorld(b, cfg, testNamespace, endpoint, key)
		for range n {
			s.add()
		}
		s.measure(b, n, watched)
	}
}

func (s *world) measure(b *testing.B, n int, watched time.Duration) {
	ctx, cancel := context.WithCancel(b.Context())
	kube, region := &counter{}, &counter{next: http.DefaultTransport}
	pace := tempo{workers: 30, qps: 100, burst: 200}
	done := make(chan error, 1)
	start := time.Now()
	go func() {
		done <- s.incarnate(ctx, wire{maas: region, kube: func(next http.RoundTripper) http.RoundTripper { kube.next = next; return kube }}, pace)
	}()
	peak := peakHeap(ctx)
	s.Eventually(s.unready, 15*time.Minute, time.Second).Should(BeEmpty())
	b.ReportMetric(time.Since(start).Seconds(), "s-to-deployed")
	// Events are sent asynchronously and belong to the previous phase.
	s.Eventually(kube.pause, time.Minute, 3*time.Second).Should(BeZero())
	s.report(b, kube, region, n, "up")

	s.Consistently(s.unready, watched, 5*time.Second).Should(BeEmpty())
	reads, writes, lists := region.take()
	_, kubeWrites, _ := kube.take()
	b.ReportMetric(float64(reads+writes+lists)/watched.Minutes(), "settled-maas-calls/min")
	b.ReportMetric(float64(kubeWrites)/watched.Minutes(), "settled-kube-writes/min")

	start = time.Now()
	for _, m := range s.machines() {
		s.remove(m)
	}
	s.Eventually(s.machines, 15*time.Minute, time.Second).Should(BeEmpty())
	b.ReportMetric(time.Since(start).Seconds(), "s-to-gone")
	s.report(b, kube, region, n, "down")
	b.ReportMetric(0, "ns/op")
	cancel()
	s.Expect(<-done).To(Succeed())
	b.ReportMetric(float64(<-peak)/(1<<20), "peak-MiB-with-simulator")
}

func (s *world) report(b *testing.B, kube, region *counter, n int, phase string) {
	reads, writes, lists := region.take()
	b.ReportMetric(float64(reads+writes)/float64(n), phase+"-maas-calls/machine")
	b.ReportMetric(float64(lists), phase+"-maas-shared-lists")
	_, kubeWrites, _ := kube.take()
	b.ReportMetric(float64(kubeWrites)/float64(n), phase+"-kube-writes/machine")
}

// peakHeap samples the heap size until the context ends.
func peakHeap(ctx context.Context) <-chan uint64 {
	result := make(chan uint64, 1)
	go func() {
		var peak uint64
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				result <- peak
				return
			case <-ticker.C:
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				peak = max(peak, stats.HeapInuse)
			}
		}
	}()
	return result
}
