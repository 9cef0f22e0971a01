package inventory

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/support/maas"
)

// shared is a value that many ask for and one loads.
type shared[T any] struct {
	clock clock.PassiveClock
	// failureAge is how long an error is told again instead of asking again; longer where MAAS asked for more.
	failureAge time.Duration

	load func(context.Context) (T, error)
	// turn holds one token; who has it may load.
	turn chan struct{}

	value          T
	loaded, failed time.Time
	err            error
	duration       time.Duration
}

func newShared[T any](c clock.PassiveClock, failureAge time.Duration, load func(context.Context) (T, error)) *shared[T] {
	s := &shared[T]{clock: c, failureAge: failureAge, load: load, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// get returns a value that is no older than maxAge. A load that takes long is not repeated sooner than it took: a list of
// thousands of machines costs MAAS as much as it costs us.
func (s *shared[T]) get(ctx context.Context, maxAge time.Duration) (T, error) {
	var none T
	select {
	case <-ctx.Done():
		return none, fmt.Errorf("waiting for MAAS: %w", ctx.Err())
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	}
	now := s.clock.Now()
	if !s.loaded.IsZero() && now.Sub(s.loaded) < max(maxAge, s.duration) {
		return s.value, nil
	}
	if s.err != nil && now.Sub(s.failed) < max(s.failureAge, maas.RetryAfter(s.err)) {
		return none, s.err
	}
	value, err := s.load(ctx)
	if err != nil {
		s.err, s.failed = err, s.clock.Now()
		return none, err
	}
	s.value, s.err, s.loaded, s.duration = value, nil, s.clock.Now(), s.clock.Since(now)
	return value, nil
}

// forget makes the next get load anew.
func (s *shared[T]) forget() {
	<-s.turn
	s.loaded, s.err = time.Time{}, nil
	s.turn <- struct{}{}
}
