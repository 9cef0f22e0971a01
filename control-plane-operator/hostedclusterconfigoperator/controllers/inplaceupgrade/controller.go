// SPDX-License-Identifier: Apache-2.0

// Package inplaceupgrade updates nodes to a new release or configuration without replacing or reinstalling their
// machines. It drains a few nodes at a time and asks the node-agent of each to apply the new configuration. It
// uncordons a node that is Ready with that configuration.
// The state of an update is on the Machine in the management cluster, where a node cannot write. What a Node reports
// is only trusted for that Node.
package inplaceupgrade

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
)

const (
	// drainPoll is the time between two checks of a node that is being drained.
	drainPoll = 5 * time.Second
	// lookAgain is the time between two checks of nodes without events, such as one that does not answer.
	lookAgain = 30 * time.Second
)

// Reconciler updates the nodes of the MachineSets whose target version differs from their current one.
type Reconciler struct {
	// Guest reads Nodes from a cache, and patches Nodes.
	Guest client.Client
	// GuestLive reads Nodes that are being updated and Pods, which are not cached, and evicts Pods.
	GuestLive client.Client
	// Management reads MachineSets from a cache, and patches MachineSets and Machines.
	Management client.Client
	// ManagementLive reads Machines without the cache: the number of updating nodes must not come from a stale list.
	ManagementLive client.Reader
	// Namespace is the hosted namespace, which holds MachineSets and Machines.
	Namespace string
	// Pause evaluates the pause of the cluster. MachineSets have a pause of their own.
	Pause pause.Gate
	// Clock provides the time for timeouts of nodes that do not answer.
	Clock clock.PassiveClock
}

// SetupWithManager watches MachineSets, their Machines, the guest's Nodes, and the HostedControlPlane, whose pause may
// end.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache) error {
	every := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, _ *clusterv1.Machine) []reconcile.Request { return r.underway(ctx) })
	return ctrl.NewControllerManagedBy(mgr).
		Named("inplaceupgrade").
		WatchesRawSource(source.Kind(management, &clusterv1.MachineSet{}, &handler.TypedEnqueueRequestForObject[*clusterv1.MachineSet]{})).
		WatchesRawSource(source.Kind(management, &clusterv1.Machine{}, every)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return r.underway(ctx) })).
		WatchesRawSource(watch.Pause(management, r.underway)).
		Complete(r)
}

// underway returns the MachineSets that have a target to reach; usually there is none.
func (r *Reconciler) underway(ctx context.Context) []reconcile.Request {
	return watch.All(ctx, r.Management, &clusterv1.MachineSetList{}, hasTarget, client.InNamespace(r.Namespace))
}

func hasTarget(set *clusterv1.MachineSet) bool {
	target := set.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
	return target != "" && target != set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] && set.DeletionTimestamp.IsZero()
}

// Reconcile implements reconcile.Reconciler. The request names a MachineSet.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*clusterv1.MachineSet, *rollout]{
		Client: r.Management, Observe: r.observe, Pause: r.pause,
		Phases: func(*rollout) []phase.Phase[*rollout] {
			return []phase.Phase[*rollout]{
				{Name: "nodes that are begun", Run: r.advance},
				{Name: "next nodes", Run: r.begin},
				{Name: "progress", Run: r.report},
			}
		},
	}.Reconcile(ctx, req)
}

// pause returns the pause of the pool, or else of the cluster. Cluster API reads the pause of the pool from the same
// annotation.
func (r *Reconciler) pause(ctx context.Context, ro *rollout) (pause.State, error) {
	if _, paused := ro.set.Annotations[clusterv1.PausedAnnotation]; paused {
		return pause.State{Paused: true}, nil
	}
	return r.Pause.State(ctx)
}

// observe reads the members of a MachineSet and evaluates each.
func (r *Reconciler) observe(ctx context.Context, set *clusterv1.MachineSet) (*rollout, error) {
	if !hasTarget(set) {
		return nil, phase.ErrStop
	}
	ro := newRollout(set)
	machines := &clusterv1.MachineList{}
	if err := r.ManagementLive.List(ctx, machines, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	claims := map[string]int{}
	for i := range machines.Items {
		claims[machines.Items[i].Status.NodeRef.Name]++
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		if !metav1.IsControlledBy(machine, set) || !machine.DeletionTimestamp.IsZero() || !machine.Status.NodeRef.IsDefined() {
			continue
		}
		m := &member{machine: machine, mark: readMark(machine), disputed: claims[machine.Status.NodeRef.Name] > 1}
		if err := r.readNode(ctx, m); err != nil {
			return nil, err
		}
		m.evaluate(ro.aim, r.Clock.Now())
		ro.members = append(ro.members, m)
	}
	ro.sort()
	return ro, nil
}

// readNode reads the node of a member. It bypasses the cache if the node is being updated, because the latest
// annotations matter.
func (r *Reconciler) readNode(ctx context.Context, m *member) error {
	var reader client.Reader = r.Guest
	if m.mark.step != "" {
		reader = r.GuestLive
	}
	node, name := &corev1.Node{}, m.machine.Status.NodeRef.Name
	err := reader.Get(ctx, client.ObjectKey{Name: name}, node)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Node %s: %w", name, err)
	}
	if err == nil && !m.disputed {
		m.node = node
	}
	return nil
}
