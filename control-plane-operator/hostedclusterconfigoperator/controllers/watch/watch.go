// SPDX-License-Identifier: Apache-2.0

// Package watch contains helpers for the setup of the guest's controllers.
package watch

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/phase"
)

// Soon returns options with a short backoff for a failing reconcile: a node cannot join before it succeeds.
func Soon() controller.Options {
	return controller.Options{RateLimiter: phase.Backoff(500*time.Millisecond, 15*time.Second)}
}

// One maps the events of all objects to a reconcile of one object of a different kind.
func One(key client.ObjectKey) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: key}}
	})
}

// Start enqueues one request at the start, for controllers without an initial event.
func Start(key client.ObjectKey) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: key})
		return nil
	})
}

// ComingAndGoing drops updates, so that only creations and deletions remain.
func ComingAndGoing() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// ControlPlane returns a source that watches the HostedControlPlane.
func ControlPlane(management cache.Cache) source.Source {
	return source.Kind(management, &hyperv1.HostedControlPlane{}, &handler.TypedEnqueueRequestForObject[*hyperv1.HostedControlPlane]{})
}

// All returns requests for every object of a list that keep accepts. If the list fails, it logs the error and returns
// none.
func All[T client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, keep func(T) bool, options ...client.ListOption) []reconcile.Request {
	if err := reader.List(ctx, list, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing what waits", "list", fmt.Sprintf("%T", list))
		return nil
	}
	var requests []reconcile.Request
	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		if item := obj.(T); keep(item) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(item)})
		}
		return nil
	})
	return requests
}

// Pause enqueues all waiting objects when the spec of the HostedControlPlane changes, since that may end a pause.
func Pause(management cache.Cache, all func(ctx context.Context) []reconcile.Request) source.Source {
	return source.Kind(management, &hyperv1.HostedControlPlane{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(ctx context.Context, _ *hyperv1.HostedControlPlane) []reconcile.Request { return all(ctx) }),
		predicate.TypedGenerationChangedPredicate[*hyperv1.HostedControlPlane]{})
}
