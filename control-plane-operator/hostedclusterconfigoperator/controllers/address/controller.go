// SPDX-License-Identifier: Apache-2.0

// Package address migrates the guest to a new address of its control plane. It asks the node-agent of each node to use
// the first address of the HostedControlPlane. It reports in the status of the HostedControlPlane which nodes do not
// use that address yet.
package address

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/nodeupdate"
	"github.com/openshift/hypershift/control-plane-operator/guestcomponents"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	fieldOwner = client.FieldOwner("hosted-cluster-config-operator-address")
	// lookAgain is the requeue interval during a migration.
	lookAgain = 10 * time.Second
	// underway is how long user-data may still contain a previous address after a new one was published.
	underway = 5 * time.Minute
)

// Reconciler migrates nodes and reports which have migrated.
type Reconciler struct {
	// Guest reads Nodes and the operator's DaemonSets from a cache, and patches Nodes.
	Guest client.Client
	// Management reads the HostedControlPlane and Machines, and writes the status of the HostedControlPlane.
	Management client.Client
	// Pause evaluates the pause of the cluster, during which no node migrates.
	Pause pause.Gate
}

// SetupWithManager watches everything that migrates: Nodes that are created, deleted or change their address
// annotations, the operator's DaemonSets, and Machines.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache, controlPlane client.ObjectKey) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("address").
		WatchesRawSource(watch.ControlPlane(management)).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Machine{}, watch.One(controlPlane), joining())).
		Watches(&corev1.Node{}, watch.One(controlPlane), builder.WithPredicates(annotated())).
		Watches(&appsv1.DaemonSet{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: controlPlane}}
		})).
		Complete(r)
}

// annotated drops updates of a Node that do not change its address annotations.
func annotated() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		return slices.ContainsFunc([]string{nodeupdate.DesiredAddress, nodeupdate.CurrentAddress, nodeupdate.AddressMessage},
			func(key string) bool { return before[key] != after[key] })
	}}
}

// joining drops updates of a Machine except the one that sets its Node.
func joining() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*clusterv1.Machine), e.ObjectNew.(*clusterv1.Machine)
		return before.Status.NodeRef != after.Status.NodeRef
	}}
}

// scope is the state of one reconcile.
type scope struct {
	hcp *hyperv1.HostedControlPlane
	// first is the address that all nodes should use.
	first hyperv1.ServedAddress
	// waiting lists the nodes, pods and machines that do not use the address yet. arrived is the number of nodes that use
	// it.
	waiting []string
	arrived int32
}

// Reconcile implements reconcile.Reconciler. The request names the HostedControlPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedControlPlane, *scope]{
		Client: r.Management, Observe: observe,
		Pause: func(ctx context.Context, _ *scope) (pause.State, error) { return r.Pause.State(ctx) },
		Phases: func(*scope) []phase.Phase[*scope] {
			return []phase.Phase[*scope]{
				{Name: "nodes", Critical: true, Run: r.moveNodes},
				{Name: "workloads on nodes", Critical: true, Run: r.watchWorkloads},
				{Name: "machines", Critical: true, Run: r.awaitMachines},
				{Name: "use of the address", Run: r.tell},
			}
		},
	}.Reconcile(ctx, req)
}

// observe stops if there is only one address: all nodes already use it.
func observe(_ context.Context, hcp *hyperv1.HostedControlPlane) (*scope, error) {
	if len(hcp.Status.ServedAddresses) < 2 {
		return nil, phase.ErrStop
	}
	return &scope{hcp: hcp, first: hcp.Status.ServedAddresses[0]}, nil
}

// moveNodes asks each node that uses a different address to use the first.
func (r *Reconciler) moveNodes(ctx context.Context, s *scope) (ctrl.Result, error) {
	nodes := &corev1.NodeList{}
	if err := r.Guest.List(ctx, nodes); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Nodes: %w", err)
	}
	want := Text(s.first)
	for i := range nodes.Items {
		node := &nodes.Items[i]
		current := node.Annotations[nodeupdate.CurrentAddress]
		if current == want && (node.Annotations[nodeupdate.DesiredAddress] == "" || node.Annotations[nodeupdate.DesiredAddress] == want) {
			s.arrived++
			continue
		}
		s.waiting = append(s.waiting, describe(node))
		err := upsert.Patch(ctx, r.Guest, node, func() {
			if node.Annotations == nil {
				node.Annotations = map[string]string{}
			}
			node.Annotations[nodeupdate.DesiredAddress] = want
		})
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("asking Node %s to use %s: %w", node.Name, want, err)
		}
	}
	return ctrl.Result{}, nil
}

// describe returns the progress of a node that does not use the address yet.
func describe(node *corev1.Node) string {
	current, message := node.Annotations[nodeupdate.CurrentAddress], node.Annotations[nodeupdate.AddressMessage]
	switch {
	case current == "":
		return fmt.Sprintf("node %s has a node-agent that cannot migrate (delete its Machine, or update its pool in place)", node.Name)
	case message != "":
		return fmt.Sprintf("node %s (%s: %s)", node.Name, current, message)
	default:
		return fmt.Sprintf("node %s (%s)", node.Name, current)
	}
}

// Text formats an address for a Node's annotations.
func Text(a hyperv1.ServedAddress) string {
	return strings.TrimSpace("https://" + hostPort(a) + " " + a.IgnitionHost)
}

func hostPort(a hyperv1.ServedAddress) string {
	return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}

// watchWorkloads waits for the pods in the nodes' host network, which are configured with the published address.
func (r *Reconciler) watchWorkloads(ctx context.Context, s *scope) (ctrl.Result, error) {
	sets := &appsv1.DaemonSetList{}
	if err := r.Guest.List(ctx, sets, client.MatchingLabels{component.GuestLabel: "true"}); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing DaemonSets: %w", err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		told := guestcomponents.ReachesAPI(set.Spec.Template)
		switch {
		case told == "":
		case told != hostPort(s.first):
			s.waiting = append(s.waiting, fmt.Sprintf("DaemonSet %s (%s)", set.Name, told))
		case set.Status.ObservedGeneration != set.Generation || set.Status.UpdatedNumberScheduled < set.Status.DesiredNumberScheduled:
			s.waiting = append(s.waiting, fmt.Sprintf("DaemonSet %s (%d of %d pods)", set.Name, set.Status.UpdatedNumberScheduled, set.Status.DesiredNumberScheduled))
		}
	}
	return ctrl.Result{}, nil
}

// awaitMachines waits for machines that were given a previous address and have not joined yet.
func (r *Reconciler) awaitMachines(ctx context.Context, s *scope) (ctrl.Result, error) {
	machines := &clusterv1.MachineList{}
	if err := r.Management.List(ctx, machines, client.InNamespace(s.hcp.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Machines: %w", err)
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		if !machine.Status.NodeRef.IsDefined() && machine.DeletionTimestamp.IsZero() && machine.CreationTimestamp.Time.Before(s.first.Since.Add(underway)) {
			s.waiting = append(s.waiting, fmt.Sprintf("machine %s (being installed)", machine.Name))
		}
	}
	return ctrl.Result{}, nil
}

const (
	maxNamed   = 5
	maxMessage = 2000
)

// tell writes to the status which nodes use the address.
func (r *Reconciler) tell(ctx context.Context, s *scope) (ctrl.Result, error) {
	//nolint:gosec // No cluster has as many nodes.
	use := hyperv1.AddressUse{Since: s.first.Since, Arrived: s.arrived, Remaining: int32(len(s.waiting)), Message: listed(s.waiting)}
	again := ctrl.Result{}
	if use.Remaining > 0 {
		again.RequeueAfter = lookAgain
	}
	if last := s.hcp.Status.AddressUse; last != nil && last.Since.Equal(&use.Since) && last.Arrived == use.Arrived && last.Remaining == use.Remaining && last.Message == use.Message {
		return again, nil
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": s.hcp.Name, "namespace": s.hcp.Namespace},
		"status": map[string]any{"addressUse": map[string]any{
			"since": use.Since.UTC().Format(time.RFC3339), "arrived": int64(use.Arrived), "remaining": int64(use.Remaining), "message": use.Message,
		}},
	}}
	patch.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
	if err := r.Management.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), fieldOwner, client.ForceOwnership); err != nil {
		return again, fmt.Errorf("writing the use of the address of HostedControlPlane %s: %w", s.hcp.Name, err)
	}
	return again, nil
}

// listed returns the first few entries and the total number.
func listed(waiting []string) string {
	if len(waiting) == 0 {
		return ""
	}
	text := strings.Join(waiting[:min(len(waiting), maxNamed)], ", ")
	if more := len(waiting) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return condition.Shorten(text, maxMessage)
}
