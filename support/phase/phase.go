// SPDX-License-Identifier: Apache-2.0

// Package phase is the one driver of all reconcilers.
//
// A pass is a list of named phases that share a scope. A phase that fails does not starve the ones after it, unless it is
// critical: then those that follow cannot mean anything and are left out until the next pass. What stands around the phases,
// from reading the object to its status, is the Driver's.
package phase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/support/logging"
)

// Phase is one named step of a pass over the scope S.
type Phase[S any] struct {
	// Name says what the phase does, for errors: "control plane namespace".
	Name string
	// Critical stops the phases that follow when this one fails.
	Critical bool
	// WhilePaused has the phase run also while the object is paused.
	WhilePaused bool
	// Run does the work. What it learns goes into the scope; waiting is a Result, not an error.
	Run func(ctx context.Context, scope S) (ctrl.Result, error)
}

// ErrStop ends a pass without a failure: what follows must wait for something that a condition tells of. A phase returns
// it (wrapped or not) together with its Result.
var ErrStop = errors.New("stop")

// run runs the phases in order; of a paused object only those meant for it. It returns the soonest requeue that any phase asked
// for, whether the pass got through without a stop or failure, and the errors of all that failed, each with its phase's name.
func run[S any](ctx context.Context, scope S, phases []Phase[S], paused bool) (result ctrl.Result, through bool, failure error) {
	var failures []error
	for _, p := range phases {
		if paused && !p.WhilePaused {
			continue
		}
		r, err := p.Run(logging.InPhase(ctx, p.Name), scope)
		result = Sooner(result, r)
		if errors.Is(err, ErrStop) {
			return result, false, errors.Join(failures...)
		}
		if err == nil {
			continue
		}
		failures = append(failures, fmt.Errorf("%s: %w", p.Name, err))
		if p.Critical {
			break
		}
	}
	return result, len(failures) == 0, errors.Join(failures...)
}

// Sooner returns the result that comes back first; a zero result never comes back.
func Sooner(a, b ctrl.Result) ctrl.Result {
	if a.IsZero() {
		return b
	}
	if b.IsZero() || a.RequeueAfter <= b.RequeueAfter {
		return a
	}
	return b
}

// After asks for another pass after d.
func After(d time.Duration) (ctrl.Result, error) {
	return ctrl.Result{RequeueAfter: d}, nil
}

// Done asks for nothing.
func Done() (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// Backoff retries a failing object after first, then after twice as long each time, and never later than after last.
func Backoff(first, last time.Duration) workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](first, last)
}

// Itself is the Observe of a Driver whose phases need to know nothing but the object.
func Itself[T any](_ context.Context, obj T) (T, error) { return obj, nil }
