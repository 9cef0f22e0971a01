// SPDX-License-Identifier: Apache-2.0

// Package turns limits how many control planes change at the same time when the operator itself is upgraded. Without a
// limit, all of them would restart their pods together, and the management cluster would have too little processor time
// for any of them.
package turns

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// Default is the number of turns unless an administrator sets a different number.
	Default = 10
	// Look is how often the holder of a turn should report whether it is complete.
	Look = 5 * time.Second
	// Retry is how often a control plane that waits should try again. It only matters for turns that end by themselves.
	Retry = time.Minute
	// settle is how long a control plane must stay complete before its turn ends. Its components change one after
	// another, with pauses for leader elections.
	settle = 30 * time.Second
	// longest is how long a turn lasts at most, so that broken control planes do not block the others.
	longest = 10 * time.Minute
)

// Turns gives turns to control planes. They are in memory only: after a restart of the operator, the control planes
// that still have to change request a turn again. A nil Turns has no limit. It is safe for concurrent use.
type Turns struct {
	most  int
	clock clock.PassiveClock
	wake  func(types.NamespacedName)

	mu      sync.Mutex
	held    map[types.NamespacedName]*turn
	waiting []types.NamespacedName
}

type turn struct {
	began time.Time
	// complete is when the control plane became complete; zero while it is not.
	complete time.Time
}

// New returns Turns with a limit; 0 means no limit. It calls wake for the control plane that waits longest when a turn
// ends. Wake must not block.
func New(most int, clock clock.PassiveClock, wake func(types.NamespacedName)) *Turns {
	if most == 0 {
		return nil
	}
	return &Turns{most: most, clock: clock, wake: wake, held: map[types.NamespacedName]*turn{}}
}

// Most returns the limit; 0 means no limit.
func (t *Turns) Most() int {
	if t == nil {
		return 0
	}
	return t.most
}

// Take reports whether a control plane has a turn, and gives it one if one is free.
func (t *Turns) Take(name types.NamespacedName) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	if _, has := t.held[name]; !has {
		if len(t.held) >= t.most {
			if !slices.Contains(t.waiting, name) {
				t.waiting = append(t.waiting, name)
			}
			return false
		}
		t.held[name] = &turn{began: t.clock.Now()}
	}
	t.forget(name)
	return true
}

// Holds reports whether a control plane has a turn. It does not give it one.
func (t *Turns) Holds(name types.NamespacedName) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	return t.held[name] != nil
}

// Report records whether a control plane is complete. Its turn ends when it has been complete for half a minute.
func (t *Turns) Report(name types.NamespacedName, complete bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held[name]
	switch {
	case held == nil:
	case !complete:
		held.complete = time.Time{}
	case held.complete.IsZero():
		held.complete = t.clock.Now()
	case t.clock.Since(held.complete) >= settle:
		t.end(name)
	}
}

// Leave ends the turn of a control plane, and its place among those that wait. A control plane that is deleted or paused
// needs neither.
func (t *Turns) Leave(name types.NamespacedName) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(name)
	if t.held[name] != nil {
		t.end(name)
	}
}

func (t *Turns) expire() {
	for name, held := range t.held {
		if t.clock.Since(held.began) >= longest {
			t.end(name)
		}
	}
}

func (t *Turns) end(name types.NamespacedName) {
	delete(t.held, name)
	if len(t.waiting) > 0 {
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.wake(next)
	}
}

func (t *Turns) forget(name types.NamespacedName) {
	t.waiting = slices.DeleteFunc(t.waiting, func(other types.NamespacedName) bool { return other == name })
}
