// SPDX-License-Identifier: Apache-2.0

// Package phase provides the driver that all reconcilers share.
//
// A reconcile is a list of named phases that share a scope. The phases after a failed one still run. If the failed
// phase is critical, they are skipped until the next reconcile, because their results would have no meaning. The
// Driver does the remaining work, from reading the object to writing its status.
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

// Phase is one named step of a reconcile over the scope S.
type Phase[S any] struct {
	// Name describes the phase in errors: "control plane namespace".
	Name string
	// Critical stops the phases that follow when this one fails.
	Critical bool
	// WhilePaused makes the phase run also while the object is paused.
	WhilePaused bool
	// Run does the work and records its findings in the scope. To wait, it returns a Result, not an error.
	Run func(ctx context.Context, scope S) (ctrl.Result, error)
}

// ErrStop ends a reconcile without a failure: the remaining phases must wait for something that a condition reports. A
// phase returns it (wrapped or not) together with its Result.
var ErrStop = errors.New("stop")

// run runs the phases in order; for a paused object, only those with WhilePaused. It returns the earliest requeue that
// any phase requested, and whether all phases ran without a stop or failure. The returned error joins the errors of all
// failed phases, each with its phase's name.
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

// Sooner returns the result with the earlier requeue. A zero result requests no requeue.
func Sooner(a, b ctrl.Result) ctrl.Result {
	if a.IsZero() {
		return b
	}
	if b.IsZero() || a.RequeueAfter <= b.RequeueAfter {
		return a
	}
	return b
}

// After returns a result that requeues the object after d.
func After(d time.Duration) (ctrl.Result, error) {
	return ctrl.Result{RequeueAfter: d}, nil
}

// Done returns a result that requests no requeue.
func Done() (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// Backoff returns a rate limiter with exponential backoff. It retries a failing object after first, then doubles the
// delay each time, up to last.
func Backoff(first, last time.Duration) workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](first, last)
}

// Itself is the Observe function of a Driver whose phases need only the object.
func Itself[T any](_ context.Context, obj T) (T, error) { return obj, nil }
