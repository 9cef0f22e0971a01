// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift/hypershift/hypershift-operator/pace"
	"github.com/openshift/hypershift/support/fairqueue"
)

// tick is the time resolution of the simulation.
const tick = 100 * time.Millisecond

// load is the work that one tenant causes: a number of pools, each of which is reconciled for a duration and then again
// after a pause.
type load struct {
	tenant        string
	pools         int
	takes, pauses time.Duration
}

// day simulates workers of the operator. It returns how long each tenant's requests waited and were reconciled, sorted.
// Time is simulated and not measured, so that the figures are the same on each machine.
func day(ticks int, loads ...load) map[string][]time.Duration {
	options := pace.Options()
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	queue := fairqueue.New("", options.MaxConcurrentReconciles, options.RateLimiter, clock)
	defer queue.ShutDown()
	due, ends, added := map[int][]reconcile.Request{}, map[int][]reconcile.Request{}, map[reconcile.Request]int{}
	took := map[string][]time.Duration{}
	by := map[string]load{}
	for _, l := range loads {
		by[l.tenant] = l
		for i := range l.pools {
			due[i%10] = append(due[i%10], reconcile.Request{NamespacedName: client.ObjectKey{Namespace: l.tenant,
				Name: fmt.Sprint(i)}})
		}
	}
	for now := range ticks {
		for _, request := range ends[now] {
			queue.Done(request)
			l := by[request.Namespace]
			took[l.tenant] = append(took[l.tenant], time.Duration(now-added[request])*tick)
			again := now + max(1, int(l.pauses/tick))
			due[again] = append(due[again], request)
		}
		for _, request := range due[now] {
			added[request] = now
			queue.Add(request)
		}
		for queue.Len() > 0 {
			request, _ := queue.Get()
			end := now + int(by[request.Namespace].takes/tick)
			ends[end] = append(ends[end], request)
		}
	}
	for _, times := range took {
		slices.Sort(times)
	}
	return took
}

func p99(times []time.Duration) time.Duration { return times[len(times)*99/100] }

// The victim has ten pools that reconcile within a second, every ten seconds.
var victim = load{tenant: "victim", pools: 10, takes: time.Second, pauses: 10 * time.Second}

// attacks are loads that a tenant can cause.
var attacks = map[string][]load{
	"500 pools with a black-hole registry": {{tenant: "a", pools: 500, takes: 15 * time.Second}},
	"500 pools whose annotations flap":     {{tenant: "a", pools: 500, takes: tick}},
	"a MAAS that does not answer":          {{tenant: "a", pools: 500, takes: 5 * time.Second, pauses: time.Second}},
	"three tenants with a black-hole registry": {{tenant: "a", pools: 500, takes: 15 * time.Second},
		{tenant: "b", pools: 500, takes: 15 * time.Second}, {tenant: "c", pools: 500, takes: 15 * time.Second}},
	"three tenants, each slow in another way": {{tenant: "a", pools: 500, takes: 15 * time.Second},
		{tenant: "b", pools: 500, takes: 5 * time.Second, pauses: time.Second}, {tenant: "c", pools: 500, takes: tick}},
}

// TestFairQueues simulates tenants that slow the operator down, next to one with a normal load.
func TestFairQueues(t *testing.T) {
	const ticks = 10 * 60 * 10
	alone := day(ticks, victim)["victim"]
	for name, loads := range attacks {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			both := day(ticks, append(slices.Clone(loads), victim)...)
			t.Logf("p99 of a reconcile: %s alone, %s beside %s", p99(alone), p99(both["victim"]), name)
			g.Expect(p99(both["victim"])).To(BeNumerically("<=", 2*p99(alone)))
			g.Expect(both["a"]).NotTo(BeEmpty(), "the others are served too")
		})
	}
}

// TestNextInLine checks that another tenant's request is next, although 500 pools of one tenant are in the queue of a
// controller.
func TestNextInLine(t *testing.T) {
	g, options := NewWithT(t), pace.Options()
	queue := options.NewQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	request := func(tenant string, i int) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: tenant, Name: fmt.Sprint(i)}}
	}
	for i := range 500 {
		queue.Add(request("a", i))
	}
	var slow []reconcile.Request
	for queue.Len() > 0 {
		taken, _ := queue.Get()
		slow = append(slow, taken)
	}
	g.Expect(len(slow)).To(BeNumerically("<=", options.MaxConcurrentReconciles/fairqueue.Share))
	queue.Add(request("victim", 0))
	for range slow {
		queue.Add(slow[0]) // The object changes while it is reconciled.
	}
	taken, _ := queue.Get()
	g.Expect(taken).To(Equal(request("victim", 0)))
}

// BenchmarkNeighbour reports how much longer a tenant's reconciles take during each attack, in percent of their
// duration without it.
func BenchmarkNeighbour(b *testing.B) {
	const ticks = 10 * 60 * 10
	alone := p99(day(ticks, victim)["victim"])
	for name, loads := range attacks {
		b.Run(name, func(b *testing.B) {
			var beside time.Duration
			for b.Loop() {
				beside = p99(day(ticks, append(slices.Clone(loads), victim)...)["victim"])
			}
			b.ReportMetric(100*float64(beside)/float64(alone), "%-of-p99-alone")
		})
	}
}
