// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// slow is a backend whose installation waits until the test ends or cancels it.
type slow struct {
	boot.None
	mu        sync.Mutex
	let       chan struct{}
	started   int
	cancelled int
	erased    int
	atOnce    int
	most      int
}

func (s *slow) Install(ctx context.Context, _ boot.Spec) error {
	s.mu.Lock()
	s.started++
	s.atOnce++
	s.most = max(s.most, s.atOnce)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.atOnce--
		s.mu.Unlock()
	}()
	select {
	case <-s.let:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		s.cancelled++
		s.mu.Unlock()
		return ctx.Err()
	}
}

func (s *slow) Erase(context.Context, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erased++
	return nil
}

func (s *slow) get(of *int) func() int {
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return *of
	}
}

// running returns a running site with no time between steps, and a function that stops it.
func running(t *testing.T, backend boot.Backend, state string) (site *simtest.Site, stop func()) {
	site = simtest.New(t, simtest.Rack, func(o *simulator.Options) {
		o.Backend, o.Durations, o.StateFile = backend, lifecycle.Durations{}, state
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		site.Run(ctx)
		close(ended)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return site, stop
}

func statusOf(site *simtest.Site, name string) func() status.Status {
	return func() status.Status { return site.Machine(name).Status }
}

func TestWorkInProgress(t *testing.T) {
	t.Run("When a deployment is aborted, its installation should be cancelled", func(t *testing.T) {
		g := NewWithT(t)
		backend := &slow{let: make(chan struct{})}
		site, _ := running(t, backend, "")
		g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=deploy").Code).To(Equal(200))
		g.Eventually(backend.get(&backend.started)).Should(Equal(1))
		g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=abort").Code).To(Equal(200))
		g.Eventually(backend.get(&backend.cancelled)).Should(Equal(1))
		g.Eventually(func() *inventory.Task { return site.Machine("one").Task }).Should(BeNil())
		g.Expect(statusOf(site, "one")()).To(Equal(status.Allocated))
	})
	t.Run("When a machine is released and deployed again, the old installation should not end the new one", func(t *testing.T) {
		g := NewWithT(t)
		backend := &slow{let: make(chan struct{})}
		site, _ := running(t, backend, "")
		site.Do("alice", "POST", "machines/aaaaa1/?op=deploy")
		g.Eventually(backend.get(&backend.started)).Should(Equal(1))
		site.Do("alice", "POST", "machines/aaaaa1/?op=release")
		g.Eventually(statusOf(site, "one")).Should(Equal(status.Ready))
		site.Do("alice", "POST", "machines/aaaaa1/?op=deploy")
		g.Eventually(backend.get(&backend.started)).Should(Equal(2))
		g.Expect(statusOf(site, "one")()).To(Equal(status.Deploying))
		g.Expect(backend.get(&backend.most)()).To(Equal(1), "a machine has one installation at a time")
		close(backend.let)
		g.Eventually(func() string { return site.Machine("one").PowerState }).Should(Equal("on"))
	})
	t.Run("When the process ends during a step, the next process should repeat the step", func(t *testing.T) {
		g := NewWithT(t)
		state := t.TempDir() + "/state"
		first := &slow{let: make(chan struct{})}
		site, stop := running(t, first, state)
		site.Do("alice", "POST", "machines/aaaaa1/?op=deploy")
		g.Eventually(first.get(&first.started)).Should(Equal(1))
		stop()
		g.Expect(statusOf(site, "one")()).To(Equal(status.Deploying), "the end of the process is no failure")
		g.Expect(site.Close()).To(Succeed())

		second := &slow{let: make(chan struct{})}
		again, _ := running(t, second, state)
		g.Eventually(second.get(&second.started)).Should(Equal(1))
		close(second.let)
		g.Eventually(func() string { return *again.Machine("one").StatusMessage }).Should(Equal("Loading deployed OS"))
	})
	t.Run("When many machines deploy at once, they should not wait for each other", func(t *testing.T) {
		g := NewWithT(t)
		backend := &slow{let: make(chan struct{})}
		site, _ := running(t, backend, "")
		for _, id := range []string{"aaaaa1", "aaaaa2", "aaaaa3", "aaaaa4"} {
			g.Expect(site.Do("alice", "POST", "machines/"+id+"/?op=deploy").Code).To(Equal(200))
		}
		g.Eventually(backend.get(&backend.most)).Should(Equal(4))
		close(backend.let)
	})
	t.Run("When a machine is deleted while it installs, it should be gone and its installation cancelled", func(t *testing.T) {
		g := NewWithT(t)
		backend := &slow{let: make(chan struct{})}
		site, _ := running(t, backend, "")
		site.Do("alice", "POST", "machines/aaaaa1/?op=deploy")
		g.Eventually(backend.get(&backend.started)).Should(Equal(1))
		g.Expect(site.Do("admin", "DELETE", "machines/aaaaa1/").Code).To(Equal(204))
		g.Eventually(backend.get(&backend.cancelled)).Should(Equal(1))
		g.Expect(site.Machine("one")).To(BeNil())
		g.Eventually(backend.get(&backend.erased)).Should(Equal(1), "nothing of it is left running")
	})
}

// broken is a backend whose calls all fail.
type broken struct{ boot.None }

var errBroken = errors.New("no such device")

func (*broken) PowerOn(context.Context, boot.Spec) error { return errBroken }
func (*broken) PowerOff(context.Context, string) error   { return errBroken }
func (*broken) Power(context.Context, string) (boot.State, error) {
	return "", errBroken
}

func TestBrokenMetal(t *testing.T) {
	metal := func(t *testing.T) *simtest.Site {
		return simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.Backend = &broken{} })
	}
	t.Run("When the deployed system cannot be started, the deployment should fail", func(t *testing.T) {
		g := NewWithT(t)
		site := metal(t)
		site.Do("alice", "POST", "machines/aaaaa1/?op=deploy")
		site.Settle(time.Hour)
		g.Expect(statusOf(site, "one")()).To(Equal(status.FailedDeployment))
		g.Expect(*site.Has("one").StatusMessage).To(ContainSubstring("no such device"))
	})
	t.Run("When a machine cannot be powered off, its release should fail and can be retried", func(t *testing.T) {
		g := NewWithT(t)
		site := metal(t)
		site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "on" })
		for range 2 {
			g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=release").Object()).To(HaveKeyWithValue("status_name", "Releasing"))
			site.Settle(time.Hour)
			g.Expect(statusOf(site, "one")()).To(Equal(status.FailedReleasing))
		}
	})
	t.Run("When the power state cannot be queried, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		site := metal(t)
		answer := site.Do("alice", "GET", "machines/aaaaa1/?op=query_power_state")
		g.Expect(answer.Code).To(Equal(503))
		g.Expect(answer.Body).To(ContainSubstring("no such device"))
		g.Expect(answer.Header.Get("Retry-After")).To(Equal("10"))
		g.Expect(site.Do("alice", "GET", "machines/zzzzzz/?op=query_power_state").Code).To(Equal(404))
	})
	t.Run("When a Deployed machine cannot be started, it should keep its status and report the error", func(t *testing.T) {
		g := NewWithT(t)
		site := metal(t)
		site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "off" })
		site.Do("alice", "POST", "machines/aaaaa1/?op=power_on")
		site.Settle(time.Hour)
		g.Expect(statusOf(site, "one")()).To(Equal(status.Deployed))
		g.Expect(*site.Has("one").StatusMessage).To(ContainSubstring("Failed to power on node"))
	})
}

// seen is a backend with a power state that the test sets.
type seen struct {
	boot.None
	mu    sync.Mutex
	state boot.State
}

func (s *seen) Power(context.Context, string) (boot.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, nil
}

func TestPollPower(t *testing.T) {
	g := NewWithT(t)
	backend := &seen{state: boot.On}
	site, _ := running(t, backend, "")
	power := func() string { return site.Machine("one").PowerState }
	g.Eventually(site.Clock.HasWaiters).Should(BeTrue())
	site.Clock.Step(time.Minute)
	g.Eventually(power).Should(Equal("on"), "somebody switched it on")
	g.Expect(site.Machine("four").PowerState).To(Equal("off"), "MAAS cannot ask machines with manual power")
	backend.mu.Lock()
	backend.state = boot.Off
	backend.mu.Unlock()
	g.Eventually(func() string {
		site.Clock.Step(time.Minute)
		return power()
	}).Should(Equal("off"))
}

func TestDurations(t *testing.T) {
	g := NewWithT(t)
	d := lifecycle.Realistic.Faster(10)
	g.Expect(d.Deploy).To(Equal(lifecycle.Realistic.Deploy / 10))
	g.Expect(d.Power).To(Equal(100 * time.Millisecond))
	g.Expect(d.DeployTimeout).To(Equal(lifecycle.Realistic.DeployTimeout), "a time-out is no duration of work")
	g.Expect(lifecycle.Realistic.Faster(0)).To(Equal(lifecycle.Realistic))
}

func TestAddressesAreHandedOutOnce(t *testing.T) {
	g := NewWithT(t)
	site, _ := running(t, nil, "")
	var all sync.WaitGroup
	for _, id := range []string{"aaaaa1", "aaaaa2", "aaaaa3", "aaaaa4"} {
		all.Go(func() { site.Do("alice", "POST", "machines/"+id+"/?op=deploy") })
	}
	all.Wait()
	ips := map[string]bool{}
	for _, m := range site.Machines() {
		for _, ip := range m.IPs() {
			ips[ip] = true
		}
	}
	g.Expect(ips).To(HaveLen(5))
}

func TestEventsAreBounded(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	for range 900 {
		g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=deploy").Code).To(Equal(200))
		g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=release").Code).To(Equal(200))
	}
	g.Expect(site.DB.View(func() error {
		g.Expect(len(site.DB.Events.All())).To(BeNumerically("==", 5000))
		return nil
	})).To(Succeed())
}
