// SPDX-License-Identifier: Apache-2.0

// Package load gives requests the price that they have on a real MAAS, whose
// region works on a few at a time and takes long to print machines, and counts
// what callers make it spend.
package load

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Cost is what a region spends on requests. The zero value is a region that
// spends nothing.
type Cost struct {
	// Workers is how many requests are worked on at once; the others wait their
	// turn. 0 means that time is counted and nobody waits for it.
	Workers int
	// Request is the time of a request besides its machines.
	Request time.Duration
	// Machine is the time for each machine that an answer prints.
	Machine time.Duration
}

// Check refuses costs that make no sense.
func (c Cost) Check() error {
	if c.Workers < 0 || c.Request < 0 || c.Machine < 0 {
		return fmt.Errorf("workers %d, time of a request %s and of a machine %s: none may be less than 0", c.Workers, c.Request, c.Machine)
	}
	return nil
}

func (c Cost) of(machines int) time.Duration {
	return c.Request + time.Duration(machines)*c.Machine
}

// Meter makes requests wait for their cost and counts it. Make one with NewMeter.
type Meter struct {
	clock clock.Clock

	mu    sync.Mutex
	gate  *gate
	since time.Time
	spent map[string]*spent
}

// spent is what the requests of one operation took since the counting began.
type spent struct {
	calls, machines int
	busy, queued    time.Duration
}

// NewMeter makes a meter of a region that spends nothing.
func NewMeter(c clock.Clock) *Meter {
	m := &Meter{clock: c, gate: newGate(Cost{})}
	m.Reset()
	return m
}

// Set changes the cost. Requests that wait under the old one go on at once.
func (m *Meter) Set(c Cost) error {
	if err := c.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.gate.over)
	m.gate = newGate(c)
	return nil
}

// Do does the work of a request, which says how many machines it prints, when
// a worker is free, and returns when its time has passed. A caller that has
// gone meanwhile spares the region nothing: its request is worked on all the same.
func (m *Meter) Do(operation string, work func() (machines int)) {
	m.mu.Lock()
	g := m.gate
	m.mu.Unlock()
	arrived := m.clock.Now()
	defer g.enter()()
	began := m.clock.Now()
	machines := work()
	cost := g.cost.of(machines)
	m.count(operation, spent{calls: 1, machines: machines, busy: cost, queued: began.Sub(arrived)})
	g.wait(m.clock, cost)
}

func (m *Meter) count(operation string, s spent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.spent[operation]
	if sum == nil {
		sum = &spent{}
		m.spent[operation] = sum
	}
	sum.add(s)
}

func (s *spent) add(o spent) {
	s.calls += o.calls
	s.machines += o.machines
	s.busy += o.busy
	s.queued += o.queued
}

// Reset starts counting anew.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.spent = m.clock.Now(), map[string]*spent{}
}

// gate lets as many requests in as there are workers.
type gate struct {
	cost    Cost
	workers chan struct{}
	// over is closed when another gate has taken this one's place.
	over chan struct{}
}

func newGate(c Cost) *gate {
	return &gate{cost: c, workers: make(chan struct{}, c.Workers), over: make(chan struct{})}
}

// enter waits for a worker and returns what lets it go.
func (g *gate) enter() (leave func()) {
	if g.cost.Workers > 0 {
		select {
		case g.workers <- struct{}{}:
			return func() { <-g.workers }
		case <-g.over:
		}
	}
	return func() {}
}

func (g *gate) wait(c clock.Clock, cost time.Duration) {
	if g.cost.Workers == 0 || cost == 0 {
		return
	}
	timer := c.NewTimer(cost)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-g.over:
	}
}
