// SPDX-License-Identifier: Apache-2.0

// Package connection reports in the HostedControlPlane whether control plane and nodes reach each other.
package connection

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/resources"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// interval is the time between two checks.
	interval = time.Minute
	// secondLook is the time from the first check to the second, which is earlier than usual: the first check has no
	// previous Leases to compare with. A kubelet renews its Lease every 10 s.
	secondLook = 20 * time.Second
	// probed is the number of kubelets that one check queries. The next check continues with other nodes.
	probed = 3
)

// Reconciler checks the connections in both directions.
type Reconciler struct {
	// Guest lists Nodes.
	Guest client.Reader
	// Live lists Leases, which are not cached.
	Live client.Reader
	// Management reads the HostedControlPlane and writes its conditions.
	Management client.Client
	// Kubelet checks the health of a node's kubelet through the guest's API server.
	Kubelet func(ctx context.Context, node string) error
	// Clock provides the current time.
	Clock clock.PassiveClock

	// renewals records the Lease renewals that previous checks observed. turn is the index of the node that the next
	// check queries first.
	renewals renewals
	turn     int
}

// SetupWithManager runs a check every minute, and immediately when a node is created or deleted. A guest without nodes
// has no initial event.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, controlPlane client.ObjectKey) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("connection").
		Watches(&corev1.Node{}, watch.One(controlPlane), builder.WithPredicates(watch.ComingAndGoing())).
		WatchesRawSource(watch.Start(controlPlane)).
		Complete(r)
}

// scope is the state of one check.
type scope struct {
	hcp    *hyperv1.HostedControlPlane
	nodes  []corev1.Node
	leases []coordinationv1.Lease
}

// Reconcile implements reconcile.Reconciler. The request names the HostedControlPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedControlPlane, *scope]{
		Client: r.Management, Observe: r.observe,
		Phases: func(*scope) []phase.Phase[*scope] {
			return []phase.Phase[*scope]{{Name: "way to the nodes", Run: r.lookDown}, {Name: "way from the nodes", Run: r.lookUp}}
		},
		Resync: func(*scope) time.Duration { return interval },
	}.Reconcile(ctx, req)
}

func (r *Reconciler) observe(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*scope, error) {
	nodes, leases := &corev1.NodeList{}, &coordinationv1.LeaseList{}
	if err := r.Guest.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	if err := r.Live.List(ctx, leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return nil, fmt.Errorf("listing the Leases of nodes: %w", err)
	}
	return &scope{hcp: hcp, nodes: nodes.Items, leases: leases.Items}, nil
}

func (r *Reconciler) lookDown(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, resources.SetCondition(ctx, r.Management, s.hcp, r.dataPlane(ctx, s.nodes))
}

func (r *Reconciler) lookUp(ctx context.Context, s *scope) (ctrl.Result, error) {
	r.renewals.observe(s.leases, r.Clock.Now())
	towards, known := controlPlane(s.nodes, &r.renewals, r.Clock.Now())
	if !known {
		return phase.After(secondLook)
	}
	return ctrl.Result{}, resources.SetCondition(ctx, r.Management, s.hcp, towards)
}
