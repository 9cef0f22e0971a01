// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	testclock "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/test/maas-simulator/load"
)

// counting is a clock that counts calls of Now. A request calls it when it arrives and when it starts.
type counting struct {
	*testclock.FakeClock
	asked atomic.Int32
}

// Now implements clock.PassiveClock.
func (c *counting) Now() time.Time {
	defer c.asked.Add(1)
	return c.FakeClock.Now()
}

func newMeter(t *testing.T, c load.Cost) (*load.Meter, *counting) {
	t.Helper()
	clock := &counting{FakeClock: testclock.NewFakeClock(time.Unix(0, 0))}
	m := load.NewMeter(clock)
	if err := m.Set(c); err != nil {
		t.Fatal(err)
	}
	return m, clock
}

func printing(machines int) func() int { return func() int { return machines } }

func TestTimeIsCountedWithoutWorkers(t *testing.T) {
	m, clock := newMeter(t, load.Cost{Request: 10 * time.Millisecond, Machine: 25 * time.Millisecond})
	m.Do("machines.read", printing(1000))
	m.Do("machines.read", printing(0))
	m.Do("machine.read", printing(1))
	clock.Step(2 * time.Minute)
	want := load.Report{
		Seconds: 120,
		Total:   load.Row{Calls: 3, Machines: 1001, BusySeconds: 25.055, CallsPerMinute: 1.5, BusySecondsPerMinute: 12.5275},
		Operations: []load.Row{
			{Operation: "machines.read", Calls: 2, Machines: 1000, BusySeconds: 25.02, CallsPerMinute: 1, BusySecondsPerMinute: 12.51},
			{Operation: "machine.read", Calls: 1, Machines: 1, BusySeconds: 0.035, CallsPerMinute: 0.5, BusySecondsPerMinute: 0.0175},
		},
	}
	if diff := cmp.Diff(want, m.Report()); diff != "" {
		t.Error(diff)
	}
	g := NewWithT(t)
	g.Expect(m.Report().Of("machine.read").Calls).To(Equal(1))
	g.Expect(m.Report().Of("zones.read")).To(Equal(load.Row{Operation: "zones.read"}))
	m.Reset()
	g.Expect(m.Report()).To(Equal(load.Report{Operations: []load.Row{}}), "a new count, and no time to divide by")
}

func TestWorkersAreFew(t *testing.T) {
	g := NewWithT(t)
	m, clock := newMeter(t, load.Cost{Workers: 2, Machine: time.Second})
	done := make(chan string)
	before := clock.asked.Load()
	for range 3 {
		go func() {
			m.Do("machines.read", printing(10))
			done <- "list"
		}()
	}
	g.Eventually(clock.Waiters).Should(Equal(2))
	g.Eventually(clock.asked.Load).Should(Equal(before+5), "all have arrived, and two are worked on")
	g.Consistently(func() int { return m.Report().Total.Calls }, "50ms").Should(Equal(2), "the third waits for a worker")
	clock.Step(9 * time.Second)
	g.Consistently(done, "50ms").ShouldNot(Receive())
	clock.Step(time.Second)
	for range 2 {
		g.Eventually(done).Should(Receive())
	}
	g.Eventually(clock.Waiters).Should(Equal(1))
	g.Expect(m.Report().Total.QueuedSeconds).To(Equal(10.0))
	clock.Step(10 * time.Second)
	g.Eventually(done).Should(Receive())
}

func TestNewCostFreesThoseThatWait(t *testing.T) {
	g := NewWithT(t)
	m, _ := newMeter(t, load.Cost{Workers: 1, Request: time.Hour})
	done := make(chan struct{}, 3)
	for range 3 {
		go func() {
			m.Do("zones.read", printing(0))
			done <- struct{}{}
		}()
	}
	g.Eventually(func() int { return m.Report().Total.Calls }).Should(BeNumerically(">=", 1))
	g.Expect(m.Set(load.Cost{})).To(Succeed())
	for range 3 {
		g.Eventually(done).Should(Receive())
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	m, _ := newMeter(t, load.Cost{})
	for _, bad := range []load.Cost{{Workers: -1}, {Request: -1}, {Machine: -1}} {
		NewWithT(t).Expect(m.Set(bad)).To(MatchError(ContainSubstring("none may be less than 0")))
	}
}
