// SPDX-License-Identifier: Apache-2.0

// Package progress waits for a state and reports the progress to the user.
package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/support/terminal"
)

// Reporter prints one line for each event, with the time of day and the time since the start.
type Reporter struct {
	out   io.Writer
	clock clock.Clock
	start time.Time
	last  string
}

// New returns a Reporter that starts now.
func New(out io.Writer, c clock.Clock) *Reporter {
	return &Reporter{out: out, clock: c, start: c.Now()}
}

// Printf prints a line, unless it equals the previous one. Text from a cluster can neither start another line nor
// control the terminal.
func (r *Reporter) Printf(format string, args ...any) {
	line := terminal.Line(fmt.Sprintf(format, args...))
	if line == r.last {
		return
	}
	r.last = line
	now := r.clock.Now()
	fmt.Fprintf(r.out, "%s %6s  %s\n", now.UTC().Format(time.RFC3339), now.Sub(r.start).Round(time.Second), line)
}

// State is what a wait observed.
type State struct {
	// Done ends the wait.
	Done bool
	// Message describes what exists, or what is still missing.
	Message string
	// Blocking describes the likely cause of the delay, for the error of a wait that times out; empty means Message.
	Blocking string
}

// Wait calls look until it is done, and reports each new message. A timeout of 0 waits until the context ends. A
// transient error of look, such as during a restart of the API server, is reported and retried.
func (r *Reporter) Wait(ctx context.Context, what string, timeout, interval time.Duration, look func(context.Context) (State, error)) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	blocking := "nothing was seen yet"
	for {
		state, err := look(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			blocking = terminal.Line(err.Error())
			r.Printf("cannot read %s: %v", what, err)
		case err == nil:
			r.Printf("%s", state.Message)
			if state.Done {
				return nil
			}
			blocking = terminal.Line(cmp.Or(state.Blocking, state.Message))
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s was not done after %s; in the way: %s", what, timeout, blocking)
			}
			return fmt.Errorf("stopped waiting for %s: %w", what, context.Cause(ctx))
		case <-r.clock.After(interval):
		}
	}
}
