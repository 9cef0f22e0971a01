package workloads

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// How soon a failed pass is tried again: a node cannot join before it succeeds.
const (
	initialRetry = 500 * time.Millisecond
	maxRetry     = 15 * time.Second
)

// SetupWithManager watches the HostedControlPlane and the components that it has in the management cluster, and in the
// guest what the components are made of, with its status, and the nodes as they come, go and become Ready.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache, hcp client.ObjectKey) error {
	one := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: hcp}}
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("workloads").
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](initialRetry, maxRetry)}).
		WatchesRawSource(source.Kind(management, &hyperv1.HostedControlPlane{}, &handler.TypedEnqueueRequestForObject[*hyperv1.HostedControlPlane]{})).
		WatchesRawSource(source.Kind[client.Object](management, &hyperv1.ControlPlaneComponent{}, handler.EnqueueRequestsFromMapFunc(one))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(one), builder.WithPredicates(readiness()))
	for _, kept := range []client.Object{
		&appsv1.DaemonSet{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{},
	} {
		b = b.Watches(kept, handler.EnqueueRequestsFromMapFunc(one))
	}
	return b.Complete(r)
}

// readiness leaves out updates of a Node that do not change whether it is Ready, which each tells several times a minute.
func readiness() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) }}
}

func ready(obj client.Object) corev1.ConditionStatus {
	node, _ := obj.(*corev1.Node)
	if node == nil {
		return ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}
