// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/openshift/hypershift/node-network/host"
)

// TestEndsBeforeItKnows stops the agent while the API server is unavailable. The agent does not know the other nodes,
// so it must not remove their routes.
func TestEndsBeforeItKnows(t *testing.T) {
	t.Parallel()
	for range 12 { // The loop chooses at random between ready channels.
		g := NewWithT(t)
		there := []host.Route{route("10.0.2.0/24", "192.0.2.2"), route("10.0.3.0/24", "192.0.2.3")}
		m := &machine{routes: slices.Clone(there)}
		client := fake.NewClientset()
		asked := make(chan struct{}, 100)
		client.PrependReactor("list", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
			select {
			case asked <- struct{}{}:
			default:
			}
			return true, nil, errors.New("connection refused")
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		g.Expect(m.agent().Run(ctx, client)).To(Succeed())
		g.Expect(m.writes).To(BeZero())
		g.Expect(m.routes).To(Equal(there), "pods of this node reach those of the others while it is started anew")
	}
}

// attempts records the times of reconciles, relative to start.
type attempts struct {
	*machine
	start time.Time
	at    []time.Duration
	fails atomic.Bool
}

func (a *attempts) Ensure([]netip.Prefix, []netip.Prefix) error {
	a.at = append(a.at, time.Since(a.start))
	if a.fails.Load() {
		return errors.New("no nftables")
	}
	return nil
}

// looped runs the agent with a fake clock and returns the times of its reconciles.
func looped(t *testing.T, fails bool, during func(a *attempts, changed chan struct{})) []time.Duration {
	t.Helper()
	var at []time.Duration
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := &attempts{machine: &machine{}, start: time.Now()}
		a.fails.Store(fails)
		agent := a.agent()
		agent.Masquerade = a
		changed := make(chan struct{}, 1)
		ended := make(chan error)
		nodes := lister(t, node("a", []string{"10.0.1.0/24"}, "192.0.2.1"))
		go func() { ended <- agent.loop(ctx, nodes, changed) }()
		synctest.Wait()
		during(a, changed)
		cancel()
		NewWithT(t).Expect(<-ended).To(Succeed(), "that it is to end is no failure")
		at = a.at
	})
	return at
}

// passes advances the clock.
func passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestLoop(t *testing.T) {
	t.Parallel()
	seconds := func(all ...int) (durations []time.Duration) {
		for _, s := range all {
			durations = append(durations, time.Duration(s)*time.Second)
		}
		return durations
	}
	t.Run("When nothing changes, it should reconcile at the start and every minute", func(t *testing.T) {
		at := looped(t, false, func(*attempts, chan struct{}) { passes(130 * time.Second) })
		NewWithT(t).Expect(at).To(Equal(seconds(0, 60, 120)))
	})
	t.Run("When a node changes, it should reconcile at once and a minute later", func(t *testing.T) {
		at := looped(t, false, func(_ *attempts, changed chan struct{}) {
			passes(10 * time.Second)
			changed <- struct{}{}
			passes(65 * time.Second)
		})
		NewWithT(t).Expect(at).To(Equal(seconds(0, 10, 70)))
	})
	t.Run("When reconciles keep failing, it should back off up to one minute", func(t *testing.T) {
		at := looped(t, true, func(*attempts, chan struct{}) { passes(200 * time.Second) })
		NewWithT(t).Expect(at).To(Equal(seconds(0, 2, 6, 14, 30, 62, 122, 182)))
	})
	t.Run("When a reconcile succeeds, the backoff should be reset for the next failure", func(t *testing.T) {
		at := looped(t, true, func(a *attempts, _ chan struct{}) {
			passes(7 * time.Second) // reconciles at 0, 2 and 6 seconds
			a.fails.Store(false)
			passes(8 * time.Second) // at 14
			a.fails.Store(true)
			passes(65 * time.Second) // at 74 and 76
			passes(2 * time.Second)  // at 80
		})
		NewWithT(t).Expect(at).To(Equal(seconds(0, 2, 6, 14, 74, 76, 80)))
	})
	t.Run("When a node changes during the backoff, it should reconcile at once and reset the backoff", func(t *testing.T) {
		at := looped(t, true, func(_ *attempts, changed chan struct{}) {
			passes(15 * time.Second) // at 0, 2, 6 and 14
			changed <- struct{}{}
			passes(3 * time.Second)
		})
		NewWithT(t).Expect(at).To(Equal(seconds(0, 2, 6, 14, 15, 17)))
	})
}

func TestReconcileInBadTimes(t *testing.T) {
	t.Parallel()
	own := node("a", []string{"10.0.1.0/24"}, "192.0.2.1")
	t.Run("When the MTU is unknown, it should return an error and write no configuration", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{failures: map[string]error{"mtu": errors.New("no interface has it")}}
		g.Expect(m.agent().reconcile(lister(t, own))).To(MatchError(ContainSubstring("no interface has it")))
		g.Expect(m.config).To(BeNil())
		g.Expect(m.pods).NotTo(BeEmpty(), "what goes without it is done")
	})
	t.Run("When the configuration cannot be written, it should return an error", func(t *testing.T) {
		m := &machine{failures: map[string]error{"config": errors.New("no space left on device")}}
		NewWithT(t).Expect(m.agent().reconcile(lister(t, own))).To(MatchError(ContainSubstring("no space left")))
	})
	t.Run("When the node's own CIDR is invalid, it should return an error and still create the other routes", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		err := m.agent().reconcile(lister(t, node("a", []string{"10.0.1.0/240"}, "192.0.2.1"), node("b", []string{"10.0.2.0/24"}, "192.0.2.2")))
		g.Expect(err).To(MatchError(And(ContainSubstring(`node a has an invalid pod CIDR "10.0.1.0/240"`), ContainSubstring("no pod CIDR yet"))))
		g.Expect(m.config).To(BeNil())
		g.Expect(m.routes).To(Equal([]host.Route{route("10.0.2.0/24", "192.0.2.2")}), "the others are reached all the same")
	})
	t.Run("When another node reuses a pod CIDR, it should replace the route without a gap", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}}
		g.Expect(m.agent().reconcile(lister(t, own, node("c", []string{"10.0.2.0/24"}, "192.0.2.3")))).To(Succeed())
		g.Expect(m.routes).To(Equal([]host.Route{route("10.0.2.0/24", "192.0.2.3")}))
		g.Expect(m.writes).To(Equal(1))
	})
	t.Run("When another node has no usable address any more, it should remove the old route", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}}
		g.Expect(m.agent().reconcile(lister(t, own, node("b", []string{"10.0.2.0/24"}, "2001:db8::2")))).To(MatchError(ContainSubstring("node b")))
		g.Expect(m.routes).To(BeEmpty())
	})
	t.Run("When the node has no address yet, it should write the configuration without an MTU", func(t *testing.T) {
		g := NewWithT(t)
		m := &machine{}
		g.Expect(m.agent().reconcile(lister(t, node("a", []string{"10.0.1.0/24"})))).To(Succeed())
		g.Expect(m.config.MTU).To(BeZero())
	})
}
