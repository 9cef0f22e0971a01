// SPDX-License-Identifier: Apache-2.0

// Package lifecycle moves machines through their life: the operations that
// users ask for, and what then happens over time.
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

// Durations are how long things take. The zero value makes everything instant.
type Durations struct {
	// Power is how long a power action takes to be seen.
	Power time.Duration
	// Deploy is the time from power-on to Deployed on a backend without metal;
	// on a real backend it is added to what the installation takes.
	Deploy time.Duration
	// Commission, Test, Erase and Rescue are the times in those modes.
	Commission, Test, Erase, Rescue time.Duration
	// DeployTimeout fails a deployment that does not end, ReleaseTimeout a
	// release and leaving rescue mode, NodeTimeout commissioning, tests and
	// entering rescue mode; zero means never. Erasing disks has no time-out, as
	// on the server.
	DeployTimeout, ReleaseTimeout, NodeTimeout time.Duration
}

// Realistic is what virtual machines take.
var Realistic = Durations{
	Power: time.Second, Deploy: 4 * time.Minute, Commission: 4 * time.Minute, Test: 2 * time.Minute,
	Erase: 90 * time.Second, Rescue: 2 * time.Minute, DeployTimeout: 60 * time.Minute,
	ReleaseTimeout: 5 * time.Minute, NodeTimeout: 30 * time.Minute,
}

// Config is what a Life works with.
type Config struct {
	DB        *inventory.DB
	Clock     clock.Clock
	Version   render.Version
	Backend   boot.Backend
	Faults    *faults.Set
	Durations Durations
	// MetadataURL is what machines are told.
	MetadataURL string
	// Log receives what goes wrong behind the API; nil means nobody listens.
	Log func(format string, args ...any)
}

// Life moves machines. Its operations run inside Update of the DB; Run and Tick
// run on their own. Make one with New.
type Life struct {
	Config

	wake    chan struct{}
	mu      sync.Mutex
	running map[string]*worker
	gone    map[string]bool // machines whose metal has to be cleared
	workers sync.WaitGroup
}

// worker is a step that is at work on one machine.
type worker struct {
	seq    int
	cancel context.CancelFunc
}

// New prepares a Life; nothing moves before Run or Tick.
func New(c Config) *Life {
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return &Life{Config: c, wake: make(chan struct{}, 1), running: map[string]*worker{}, gone: map[string]bool{}}
}

// hasMetal reports whether machines boot and report by themselves.
func (l *Life) hasMetal() bool {
	_, none := l.Backend.(*boot.None)
	return !none
}

// Wake makes Run look at what is due; callers use it after an update.
func (l *Life) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run does what is due until the context ends, and waits for what it started.
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

// Tick does all that is due now and what follows from it at once, and returns
// when it is done: for tests that step a clock.
func (l *Life) Tick(ctx context.Context) {
	for {
		_, started := l.dispatch(ctx)
		l.workers.Wait()
		if started == 0 {
			return
		}
	}
}

// dispatch starts what is due; it returns when something will be due next (the
// zero time: nothing is planned) and how much it started.
func (l *Life) dispatch(ctx context.Context) (next time.Time, started int) {
	now := l.Clock.Now()
	var due []*inventory.Machine
	var cleared []string
	// View's function returns nil always.
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

// removed stops the work on machines that were deleted, and returns those whose
// metal can be cleared now.
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
			delete(l.gone, id) // the deletion was taken back
		case l.running[id] == nil:
			delete(l.gone, id)
			free = append(free, id)
		}
	}
	return free
}

// clear takes the power and the disks of a machine that was deleted.
func (l *Life) clear(ctx context.Context, id string) error {
	if err := l.Backend.PowerOff(ctx, id); err != nil {
		return err
	}
	return l.Backend.Erase(ctx, id)
}

// cancelStale stops work that a newer task, or none, has replaced.
func (l *Life) cancelStale(m *inventory.Machine) {
	if w := l.running[m.SystemID]; w != nil && (m.Task == nil || m.Task.Seq != w.seq) {
		w.cancel()
	}
}

// start runs a step of a machine beside the others.
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

// Faster divides every duration but the time-outs.
func (d Durations) Faster(factor float64) Durations {
	if factor <= 0 {
		return d
	}
	for _, each := range []*time.Duration{&d.Power, &d.Deploy, &d.Commission, &d.Test, &d.Erase, &d.Rescue} {
		*each = time.Duration(float64(*each) / factor)
	}
	return d
}
