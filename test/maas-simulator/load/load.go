// SPDX-License-Identifier: Apache-2.0

// Package load delays requests by the time that they take on a real MAAS. A MAAS region handles few requests at once
// and takes long to render machines. The package also counts the time that each operation takes in the region.
package load

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Cost is the cost of requests in a region. The zero value means no cost.
type Cost struct {
	// Workers is the number of requests that run at once; others wait. 0 means that the cost is only counted: no request
	// waits.
	Workers int
	// Request is the time of a request without its machines.
	Request time.Duration
	// Machine is the time for each machine in a response.
	Machine time.Duration
}

// Check returns an error if a value is negative.
func (c Cost) Check() error {
	if c.Workers < 0 || c.Request < 0 || c.Machine < 0 {
		return fmt.Errorf("workers %d, time of a request %s and of a machine %s: none may be less than 0", c.Workers, c.Request, c.Machine)
	}
	return nil
}

func (c Cost) of(machines int) time.Duration {
	return c.Request + time.Duration(machines)*c.Machine
}

// Meter delays requests by their cost and counts the cost. Create one with NewMeter.
type Meter struct {
	clock clock.Clock

	mu    sync.Mutex
	gate  *gate
	since time.Time
	spent map[string]*spent
}

// spent is the cost of one operation's requests since the last reset.
type spent struct {
	calls, machines int
	busy, queued    time.Duration
}

// NewMeter returns a Meter with zero cost.
func NewMeter(c clock.Clock) *Meter {
	m := &Meter{clock: c, gate: newGate(Cost{})}
	m.Reset()
	return m
}

// Set changes the cost. Requests that wait for the previous cost continue immediately.
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

// Do runs work when a worker is free, and returns after the request's cost has passed. work returns the number of
// machines in the response. A request whose client has disconnected costs the same, because the region still handles
// it.
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

// Reset sets all counters to zero.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.spent = m.clock.Now(), map[string]*spent{}
}

// gate limits the number of running requests to the number of workers.
type gate struct {
	cost    Cost
	workers chan struct{}
	// over is closed when Set replaces this gate.
	over chan struct{}
}

func newGate(c Cost) *gate {
	return &gate{cost: c, workers: make(chan struct{}, c.Workers), over: make(chan struct{})}
}

// enter waits for a worker and returns a function that releases it.
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
