// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// evenly is the even distribution of twenty machines of one pool over five hosts.
var evenly = map[string]int{"h0": 4, "h1": 4, "h2": 4, "h3": 4, "h4": 4}

// perHost counts the MaasMachines by the host in their status.
func (b *world) perHost() map[string]int {
	b.t.Helper()
	hosts := map[string]int{}
	for _, m := range b.machines() {
		hosts[m.Status.LXDHost]++
	}
	return hosts
}

// composing counts the compose calls, and reports each of them.
type composing struct {
	next  http.RoundTripper
	mu    sync.Mutex
	calls int
	then  func(calls int)
}

func (c *composing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("op") == "compose" || strings.HasSuffix(r.URL.Path, "op-compose") {
		c.mu.Lock()
		c.calls++
		n, then := c.calls, c.then
		c.mu.Unlock()
		if then != nil {
			defer then(n)
		}
	}
	return c.next.RoundTrip(r)
}

// TestTwentyAtOnce composes twenty machines of one pool concurrently, on five hosts with capacity for four each.
func TestTwentyAtOnce(t *testing.T) {
	t.Parallel()
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for _, tc := range []struct {
		name, namespace string
		restart         bool
	}{
		{"When twenty machines are created at once, each of five hosts should get four and reject none", "clusters-twenty", false},
		{"When the provider restarts in between, recorded placements should keep the spread even", "clusters-twenty-restart", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := hostsOf(t, 5)
			b := newWorld(t, cfg, tc.namespace, simtest.Serve(t, s), s.Key("admin"))
			b.vm, b.cores = true, 4
			for range 20 {
				b.add()
			}
			calls := &composing{next: http.DefaultTransport}
			if tc.restart {
				b.dieAt(calls, 7)
			}
			b.converge(wire{maas: calls}, hasty, patience)
			if diff := cmp.Diff(evenly, b.perHost()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !tc.restart {
				b.Expect(calls.calls).To(Equal(20), "no host is asked for more than it has")
			}
			b.Expect(s.Machines()).To(HaveLen(20))
		})
	}
}

// dieAt runs a provider until it has composed n machines, then ends it.
func (b *world) dieAt(calls *composing, n int) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	calls.then = func(now int) {
		if now == n {
			cancel()
		}
	}
	_ = b.incarnate(ctx, wire{maas: calls}, hasty) // The instance was cancelled.
	calls.mu.Lock()                                // Calls in progress end a moment later.
	defer calls.mu.Unlock()
	calls.then = nil
}

// BenchmarkLXD creates twenty virtual machines concurrently, on five hosts with capacity for four each, with the timing
// of production.
func BenchmarkLXD(b *testing.B) {
	const n = 20
	cfg := testenv.Start(b, crds.Infrastructure, crds.ClusterAPI)
	watched := setting(b, benchSettledEnv, time.Minute, time.ParseDuration)
	for b.Loop() {
		s := hostsOf(b, 5)
		w := newWorld(b, cfg, "clusters-lxd", simtest.Serve(b, s), s.Key("admin"))
		w.vm, w.cores = true, 4
		for range n {
			w.add()
		}
		w.measure(b, n, watched)
	}
}
