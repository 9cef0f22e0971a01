// Package connection tells in the HostedControlPlane whether control plane and nodes reach each other.
package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/resources"
)

const (
	// interval is the time between two looks.
	interval = time.Minute
	// secondLook follows the first one after a start, which has nothing to compare with. A kubelet renews every 10 s.
	secondLook = 20 * time.Second
	// probed is how many nodes are asked in one look; others have their turn in the next.
	probed = 3
)

// Reconciler looks at the connections in both directions.
type Reconciler struct {
	// Guest lists Nodes.
	Guest client.Reader
	// Live lists Leases, which nobody caches.
	Live client.Reader
	// Management reads the HostedControlPlane and writes its conditions.
	Management client.Client
	// Kubelet asks the kubelet of a node for its health through the guest's API server.
	Kubelet func(ctx context.Context, node string) error
	// Clock tells the time.
	Clock clock.PassiveClock

	// renewals and turn are what the last looks saw.
	renewals renewals
	turn     int
}

// SetupWithManager looks every minute, and at once when a node comes or goes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, controlPlane client.ObjectKey) error {
	one := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: controlPlane}}
	}
	comings := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	// A guest without nodes has no event to begin with.
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: controlPlane})
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("connection").
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(one), builder.WithPredicates(comings)).
		WatchesRawSource(start).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. The request names the HostedControlPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Management.Get(ctx, req.NamespacedName, hcp); err != nil {
		return ctrl.Result{RequeueAfter: interval}, client.IgnoreNotFound(err)
	}
	nodes := &corev1.NodeList{}
	if err := r.Guest.List(ctx, nodes); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Nodes: %w", err)
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.Live.List(ctx, leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the Leases of nodes: %w", err)
	}
	next := interval
	err := resources.SetCondition(ctx, r.Management, hcp, r.dataPlane(ctx, nodes.Items))
	r.renewals.observe(leases.Items, r.Clock.Now())
	if towards, known := controlPlane(nodes.Items, &r.renewals, r.Clock.Now()); known {
		err = errors.Join(err, resources.SetCondition(ctx, r.Management, hcp, towards))
	} else {
		next = secondLook
	}
	return ctrl.Result{RequeueAfter: next}, err
}
