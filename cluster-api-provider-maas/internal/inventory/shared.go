// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/support/maas"
)

// gate permits one call at a time, and none for a while after a failed call.
type gate struct {
	clock clock.PassiveClock
	// failureAge is how long an error is repeated instead of calling again. It is longer if MAAS sent a longer
	// Retry-After, or if the call took longer to fail.
	failureAge time.Duration
	// turn holds one token; its owner may call.
	turn chan struct{}

	err   error
	until time.Time
}

func newGate(c clock.PassiveClock, failureAge time.Duration) gate {
	g := gate{clock: c, failureAge: failureAge, turn: make(chan struct{}, 1)}
	g.turn <- struct{}{}
	return g
}

func (g *gate) enter(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting for MAAS: %w", ctx.Err())
	case <-g.turn:
		return nil
	}
}

func (g *gate) leave() { g.turn <- struct{}{} }

// failed returns the error of the last call until the next one is permitted.
func (g *gate) failed() error {
	if g.clock.Now().Before(g.until) {
		return g.err
	}
	return nil
}

// note records the result of a call that started at began.
func (g *gate) note(began time.Time, err error) {
	now := g.clock.Now()
	g.err, g.until = err, now.Add(max(g.failureAge, maas.RetryAfter(err), now.Sub(began)))
	if err == nil {
		g.until = time.Time{}
	}
}

// shared is a cached value that one caller loads for all.
type shared[T any] struct {
	gate
	load func(context.Context) (T, error)
	// rest limits how often the value is loaded. The value is cached for at least this multiple of the duration of
	// the load, up to longestRest.
	rest int

	value     T
	loaded    time.Time
	took      time.Duration
	forgotten atomic.Bool
}

// longestRest is the longest time that an expensive load is not repeated.
const longestRest = time.Hour

func newShared[T any](c clock.PassiveClock, failureAge time.Duration, load func(context.Context) (T, error)) *shared[T] {
	return &shared[T]{gate: newGate(c, failureAge), load: load, rest: 1}
}

// get returns the value, at most maxAge old. If the load is slow, the value may be older: a list of thousands of
// machines is expensive for MAAS and for the controller.
func (s *shared[T]) get(ctx context.Context, maxAge time.Duration) (T, error) {
	var none T
	if err := s.enter(ctx); err != nil {
		return none, err
	}
	defer s.leave()
	now := s.clock.Now()
	if s.forgotten.Swap(false) {
		s.loaded, s.until = time.Time{}, time.Time{}
	}
	if !s.loaded.IsZero() && now.Sub(s.loaded) < max(maxAge, min(time.Duration(s.rest)*s.took, longestRest)) {
		return s.value, nil
	}
	if err := s.failed(); err != nil {
		return none, err
	}
	value, err := s.load(ctx)
	s.note(now, err)
	if err != nil {
		return none, err
	}
	s.value, s.loaded, s.took = value, s.clock.Now(), s.clock.Since(now)
	return value, nil
}

// forget forces the next get to load the value.
func (s *shared[T]) forget() { s.forgotten.Store(true) }
