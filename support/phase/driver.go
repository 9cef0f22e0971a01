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

// Driver reconciles objects of type T. Each reconcile has its own scope S. The steps of a reconcile are:
//
//  1. Fetch the object. An object that is gone, or is being deleted without our finalizer, needs no work.
//  2. Observe, which creates the scope.
//  3. Pause: for a paused object, only the phases with WhilePaused run. The next reconcile follows when the pause ends.
//  4. Finalizer, before anything is created for the object.
//  5. Phases, or those of the deletion. After a complete deletion, the driver removes the finalizer and stops.
//  6. Report, once, even if phases failed.
//
// The driver requeues the object as a phase requests. After a failure, the controller's rate limiter decides. Failures
// that only mean that the reconcile saw an outdated object are not reported: the next reconcile follows soon.
type Driver[T client.Object, S any] struct {
	// Client reads the object and writes its finalizers.
	Client client.Client
	// Finalizers of the object: the first one is ours, and the others are removed with it. Without any, the driver ignores
	// deletions.
	Finalizers []string
	// Observe creates the scope from the object. ErrStop skips the object.
	Observe func(ctx context.Context, obj T) (S, error)
	// Pause reports whether the object is paused; nil means never.
	Pause func(ctx context.Context, scope S) (pause.State, error)
	// Prepare sets what else the object needs before anything is created for it. It is written together with the
	// finalizer. May be nil.
	Prepare func(scope S) error
	// Phases returns the steps of a reconcile, in order; nil if there is nothing to do but report.
	Phases func(scope S) []Phase[S]
	// Deletion returns the steps that clean up after the object; nil if there is nothing to clean up.
	Deletion func(scope S) []Phase[S]
	// Report writes the status from the scope and the failure of the reconcile. May be nil.
	Report func(ctx context.Context, scope S, failure error) error
	// Resync returns the maximum time until the next reconcile of an object that is not paused. It repairs changes that no
	// watch reports; nil or zero means never. The driver calls it after the report.
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

// advance reconciles an object that is not being deleted.
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

// delete runs the phases of the deletion, and removes the finalizers when all phases are complete.
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
