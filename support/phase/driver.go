// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift/hypershift/support/finalizer"
	"github.com/openshift/hypershift/support/pause"
)

// Driver makes the passes of a reconciler over objects of type T, each with a scope S of its own. The order of a pass:
//
//  1. Fetch the object. One that is gone, or that goes without our finalizer, needs nothing.
//  2. Observe, which makes the scope.
//  3. Pause: a paused object gets only the phases that run while paused, and its next pass when the pause ends.
//  4. Finalizer, before anything is made for the object.
//  5. Phases, or those of the deletion; when they are through, the finalizer goes, and the pass is over.
//  6. Report, once, also when phases failed.
//
// The object comes back as soon as a phase asked for, or after a failure as the controller's rate limiter says. Failures that
// only mean that the pass saw an outdated object are not reported: the next pass follows in a moment.
type Driver[T client.Object, S any] struct {
	// Client reads the object and writes its finalizers.
	Client client.Client
	// Finalizers of the object: the first is ours, the others go with it. Without any, a deletion is nobody's business here.
	Finalizers []string
	// Observe makes the scope from the object. ErrStop leaves the object alone.
	Observe func(ctx context.Context, obj T) (S, error)
	// Pause tells whether the object is paused; nil means never.
	Pause func(ctx context.Context, scope S) (pause.State, error)
	// Prepare shapes what else must be on the object before anything is made for it; it is written with the finalizer. May be nil.
	Prepare func(scope S) error
	// Phases are the steps of a pass, in order; nil when there is nothing to do but report.
	Phases func(scope S) []Phase[S]
	// Deletion are the steps that take the object apart; nil when there is nothing to take apart.
	Deletion func(scope S) []Phase[S]
	// Report writes the status from what the pass found out and from its failure. May be nil.
	Report func(ctx context.Context, scope S, failure error) error
	// Resync is how long after a pass the object comes back at the latest, unless it is paused, to heal what no watch tells of;
	// nil or zero means never. It is asked after the report.
	Resync func(scope S) time.Duration
}

// Reconcile implements reconcile.Reconciler.
func (d Driver[T, S]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	kind := reflect.TypeFor[T]().Elem()
	obj := reflect.New(kind).Interface().(T)
	err := d.Client.Get(ctx, req.NamespacedName, obj)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading %s %s: %w", kind.Name(), req, err)
	}
	if deleted(obj) && !d.finalizes(obj) {
		return settle(ctrl.Result{}, finalizer.Remove(ctx, d.Client, obj, d.Finalizers...), nil)
	}
	scope, err := d.Observe(ctx, obj)
	if errors.Is(err, ErrStop) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	var state pause.State
	if d.Pause != nil {
		if state, err = d.Pause(ctx, scope); err != nil {
			return ctrl.Result{}, err
		}
	}
	switch {
	case state.Frozen:
		return d.end(ctx, scope, ctrl.Result{RequeueAfter: state.For}, nil, state)
	case deleted(obj):
		return d.delete(ctx, obj, scope)
	}
	return d.advance(ctx, obj, scope, state)
}

// advance brings an object that is to stay a step closer to its spec.
func (d Driver[T, S]) advance(ctx context.Context, obj T, scope S, state pause.State) (ctrl.Result, error) {
	if len(d.Finalizers) > 0 {
		prepare := func() error {
			if d.Prepare == nil {
				return nil
			}
			return d.Prepare(scope)
		}
		if err := finalizer.Add(ctx, d.Client, obj, d.Finalizers[0], prepare); err != nil {
			return settle(ctrl.Result{}, err, nil)
		}
	}
	var phases []Phase[S]
	if d.Phases != nil {
		phases = d.Phases(scope)
	}
	result, _, failure := run(ctx, scope, phases, state.Paused)
	return d.end(ctx, scope, Sooner(result, ctrl.Result{RequeueAfter: state.For}), failure, state)
}

// delete takes the object apart, and lets it go when all phases of the deletion are through.
func (d Driver[T, S]) delete(ctx context.Context, obj T, scope S) (ctrl.Result, error) {
	if d.Deletion != nil {
		result, through, failure := run(ctx, scope, d.Deletion(scope), false)
		if !through {
			return d.end(ctx, scope, result, failure, pause.State{})
		}
	}
	return settle(ctrl.Result{}, finalizer.Remove(ctx, d.Client, obj, d.Finalizers...), nil)
}

func (d Driver[T, S]) end(ctx context.Context, scope S, result ctrl.Result, failure error, state pause.State) (ctrl.Result, error) {
	result, failure = settle(result, failure, func(failure error) error {
		if d.Report == nil {
			return nil
		}
		return d.Report(ctx, scope, failure)
	})
	if failure == nil && d.Resync != nil && !state.Paused {
		result = Sooner(result, ctrl.Result{RequeueAfter: d.Resync(scope)})
	}
	return result, failure
}

func (d Driver[T, S]) finalizes(obj T) bool {
	return len(d.Finalizers) > 0 && controllerutil.ContainsFinalizer(obj, d.Finalizers[0])
}

func deleted(obj client.Object) bool { return !obj.GetDeletionTimestamp().IsZero() }
