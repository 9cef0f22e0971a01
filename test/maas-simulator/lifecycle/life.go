// SPDX-License-Identifier: Apache-2.0

// Package lifecycle simulates the life cycle of machines: the operations that users request, and their progress over
// time.
package lifecycle

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// Durations are the durations of operations. The zero value means no time.
type Durations struct {
	// Power is the time until a power action takes effect.
	Power time.Duration
	// Deploy is the time from power-on to Deployed. A backend with machines adds the time of its installation.
	Deploy time.Duration
	// Commission, Test, Erase and Rescue are the durations of these operations.
	Commission, Test, Erase, Rescue time.Duration
	// DeployTimeout is the timeout of deployments. ReleaseTimeout applies to releases and to exiting rescue mode.
	// NodeTimeout applies to commissioning, tests and entering rescue mode. Zero means no timeout. As in MAAS, erasing
	// disks has no timeout.
	DeployTimeout, ReleaseTimeout, NodeTimeout time.Duration
}

// Realistic contains the durations of virtual machines.
var Realistic = Durations{
	Power: time.Second, Deploy: 4 * time.Minute, Commission: 4 * time.Minute, Test: 2 * time.Minute,
	Erase: 90 * time.Second, Rescue: 2 * time.Minute, DeployTimeout: 60 * time.Minute,
	ReleaseTimeout: 5 * time.Minute, NodeTimeout: 30 * time.Minute,
}

// Config is the configuration of a Life.
type Config struct {
	DB        *inventory.DB
	Clock     clock.Clock
	Version   render.Version
	Backend   boot.Backend
	Faults    *faults.Set
	Durations Durations
	// MetadataURL is the metadata URL that machines get.
	MetadataURL string
	// Log logs errors outside of API requests; nil discards them.
	Log func(format string, args ...any)
}

// Life simulates the life cycle of machines. Its operations must run inside Update of the DB; Run and Tick must not.
// Create one with New.
type Life struct {
	Config

	wake    chan struct{}
	mu      sync.Mutex
	running map[string]*worker
	gone    map[string]bool // deleted machines that the backend must still clear
	workers sync.WaitGroup
}

// worker is the running step of a machine.
type worker struct {
	seq    int
	cancel context.CancelFunc
}

// New returns a Life. No machine changes its state before Run or Tick is called.
func New(c Config) *Life {
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return &Life{Config: c, wake: make(chan struct{}, 1), running: map[string]*worker{}, gone: map[string]bool{}}
}

// hasMetal reports whether the backend has machines that boot and send their own reports.
func (l *Life) hasMetal() bool {
	_, none := l.Backend.(*boot.None)
	return !none
}

// Wake makes Run check for due steps. Callers use it after an update.
func (l *Life) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run runs due steps until the context ends, and then waits for the running ones.
func (l *Life) Run(ctx context.Context) {
	defer l.workers.Wait()
	if l.hasMetal() {
		l.workers.Go(func() { l.pollPower(ctx) })
	}
	for ctx.Err() == nil {
		next, _ := l.dispatch(ctx)
		l.sleep(ctx, next)
	}
}

func (l *Life) sleep(ctx context.Context, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := l.Clock.NewTimer(max(0, until.Sub(l.Clock.Now())))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-due:
	}
}

// Tick runs all steps that are due, including those that become due as a result. It returns when they have ended. Tests
// with a fake clock use it.
func (l *Life) Tick(ctx context.Context) {
	for {
		_, started := l.dispatch(ctx)
		l.workers.Wait()
		if started == 0 {
			return
		}
	}
}

// dispatch starts the due steps. next is the time of the next step, or zero if there is none; started is the number of
// started steps.
func (l *Life) dispatch(ctx context.Context) (next time.Time, started int) {
	now := l.Clock.Now()
	var due []*inventory.Machine
	var cleared []string
	// The function always returns nil.
	_ = l.DB.View(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		cleared = l.removed()
		for _, m := range l.DB.Machines.All() {
			l.cancelStale(m)
			if m.Task == nil || l.running[m.SystemID] != nil {
				continue
			}
			at := m.Task.Next()
			if at.IsZero() {
				continue
			}
			if !at.After(now) {
				due = append(due, m)
			} else if next.IsZero() || at.Before(next) {
				next = at
			}
		}
		return nil
	})
	for _, m := range due {
		l.start(ctx, m.SystemID, m.Task.Seq, func(ctx context.Context) error { return l.advance(ctx, m) })
	}
	for _, id := range cleared {
		l.start(ctx, id, -1, func(ctx context.Context) error { return l.clear(ctx, id) })
	}
	return next, len(due) + len(cleared)
}

// removed cancels the steps of deleted machines. It returns the machines that the backend can clear now.
func (l *Life) removed() []string {
	for id, w := range l.running {
		if w.seq >= 0 && l.DB.Machines.Get(id) == nil {
			w.cancel()
		}
	}
	var free []string
	for id := range l.gone {
		switch {
		case l.DB.Machines.Get(id) != nil:
			delete(l.gone, id) // The deletion was rolled back.
		case l.running[id] == nil:
			delete(l.gone, id)
			free = append(free, id)
		}
	}
	return free
}

// clear powers off a deleted machine and erases its disks.
func (l *Life) clear(ctx context.Context, id string) error {
	if err := l.Backend.PowerOff(ctx, id); err != nil {
		return err
	}
	return l.Backend.Erase(ctx, id)
}

// cancelStale cancels a step whose task has ended or was replaced.
func (l *Life) cancelStale(m *inventory.Machine) {
	if w := l.running[m.SystemID]; w != nil && (m.Task == nil || m.Task.Seq != w.seq) {
		w.cancel()
	}
}

// start runs a step in its own goroutine.
func (l *Life) start(ctx context.Context, id string, seq int, step func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	l.running[id] = &worker{seq: seq, cancel: cancel}
	l.mu.Unlock()
	l.workers.Go(func() {
		defer func() {
			cancel()
			l.mu.Lock()
			delete(l.running, id)
			l.mu.Unlock()
			l.Wake()
		}()
		if err := step(ctx); err != nil {
			l.Log("machine %s: %v", id, err)
		}
	})
}

// Faster returns durations that are divided by the factor. Timeouts do not change.
func (d Durations) Faster(factor float64) Durations {
	if factor <= 0 {
		return d
	}
	for _, each := range []*time.Duration{&d.Power, &d.Deploy, &d.Commission, &d.Test, &d.Erase, &d.Rescue} {
		*each = time.Duration(float64(*each) / factor)
	}
	return d
}
