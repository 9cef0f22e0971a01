// Package phase runs the ordered phases of a reconcile.
//
// A reconcile is a list of named phases that share a scope. A phase that fails does not starve the ones after it,
// unless it is critical: then those that follow cannot mean anything and are left out until the next pass.
package phase

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Phase is one named step of a reconcile over the scope S.
type Phase[S any] struct {
	// Name says what the phase does, for errors: "control plane namespace".
	Name string
	// Critical stops the phases that follow when this one fails or asks to stop.
	Critical bool
	// Run does the work. What it learns goes into the scope; waiting is a Result, not an error.
	Run func(ctx context.Context, scope S) (ctrl.Result, error)
}

// ErrStop ends a pass without a failure: what follows must wait for something that a condition tells of. A phase returns
// it (wrapped or not) together with its Result.
var ErrStop = errors.New("stop")

// Run runs the phases in order. It returns the soonest requeue that any phase asked for, and the errors of all that
// failed, each with its phase's name.
func Run[S any](ctx context.Context, scope S, phases []Phase[S]) (ctrl.Result, error) {
	var result ctrl.Result
	var failures []error
	for _, p := range phases {
		r, err := p.Run(ctx, scope)
		result = Sooner(result, r)
		if errors.Is(err, ErrStop) {
			break
		}
		if err == nil {
			continue
		}
		failures = append(failures, fmt.Errorf("%s: %w", p.Name, err))
		if p.Critical {
			break
		}
	}
	return result, errors.Join(failures...)
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
