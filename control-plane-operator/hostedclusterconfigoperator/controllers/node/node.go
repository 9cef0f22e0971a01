// SPDX-License-Identifier: Apache-2.0

// Package node sets the labels and taints of the NodePool on nodes of the guest, and deletes nodes whose Machine is
// gone.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
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
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// labelPrefix is the prefix of a Machine's labels that its node gets without the prefix.
	labelPrefix = "managed.hypershift.openshift.io."
	// nodePoolKey is an annotation of a Machine (namespace/name), and the label of its node (name).
	nodePoolKey = hyperv1.NodePoolLabel
	// taintsAnnotation is the JSON list of taints that a Machine's node starts with.
	taintsAnnotation = hyperv1.NodePoolTaintsAnnotation
	// syncedAnnotation marks nodes whose labels and taints were set: after that, the user may change them.
	syncedAnnotation = "hypershift.openshift.io/labelsSynced"
	// machineAnnotation of a node names its Machine. A node without it is not managed.
	machineAnnotation = "hypershift.openshift.io/machine"
	// leavingAnnotation of a node names its Machine when the Machine is being deleted. Once that Machine is gone, its
	// hardware has been released.
	leavingAnnotation = "hypershift.openshift.io/machine-leaving"
)

// Reconciler sets labels and taints on the guest's nodes, once each. It also deletes the node of a Machine that was
// deleted before Cluster API knew its node. No other controller would delete that node, and the machine could not join
// again under its name.
type Reconciler struct {
	// Guest reads, patches and deletes Nodes.
	Guest client.Client
	// Management reads Machines.
	Management client.Reader
	// Live reads Machines without the cache, before a Node is deleted because its Machine is missing.
	Live client.Reader
	// Namespace is the hosted namespace, which holds the Machines.
	Namespace string
	// Pause evaluates the pause of the cluster. A paused cluster's nodes are not changed.
	Pause pause.Gate
	// Clock provides the time to compute how long a node has not been Ready.
	Clock clock.PassiveClock
	// Deletions limits the rate of Node deletions; see NewDeletions.
	Deletions flowcontrol.PassiveRateLimiter
	// Recorder reports nodes with the identity of another Machine, in the events of the Machine; nil reports none.
	Recorder events.EventRecorder

	// told holds the UIDs of nodes that were reported.
	told sync.Map
}

// SetupWithManager watches the guest's Nodes, the Machines and the HostedControlPlane. A Machine gets its node
// reference some time after its Node registers. A change of the HostedControlPlane may end a pause.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, management cache.Cache) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("node").
		For(&corev1.Node{}).
		WatchesRawSource(source.Kind(management, &clusterv1.Machine{}, handler.TypedEnqueueRequestsFromMapFunc(nodeOf))).
		WatchesRawSource(watch.Pause(management, r.everyNode)).
		Complete(r)
}

func (r *Reconciler) everyNode(ctx context.Context) []reconcile.Request {
	return watch.All(ctx, r.Guest, &corev1.NodeList{}, func(*corev1.Node) bool { return true })
}

// nodeOf returns the nodes that a Machine may have: the node in its node reference, and those with its host names.
func nodeOf(_ context.Context, machine *clusterv1.Machine) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range nodeNames(machine) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
	return requests
}

func nodeNames(machine *clusterv1.Machine) []string {
	if machine.Status.NodeRef.Name != "" {
		return []string{machine.Status.NodeRef.Name}
	}
	var names []string
	for _, address := range machine.Status.Addresses {
		if address.Type == clusterv1.MachineHostName || address.Type == clusterv1.MachineInternalDNS {
			names = append(names, strings.ToLower(address.Address))
		}
	}
	return names
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*corev1.Node, *corev1.Node]{
		Client: r.Guest, Observe: phase.Itself[*corev1.Node],
		Pause: func(ctx context.Context, _ *corev1.Node) (pause.State, error) { return r.Pause.State(ctx) },
		Phases: func(*corev1.Node) []phase.Phase[*corev1.Node] {
			return []phase.Phase[*corev1.Node]{{Name: "Machine of the node", Run: r.follow}}
		},
	}.Reconcile(ctx, req)
}

// follow applies the Machine's settings to the node, or handles a node whose Machine is gone.
func (r *Reconciler) follow(ctx context.Context, node *corev1.Node) (ctrl.Result, error) {
	machines, err := r.machines(ctx, r.Management)
	if err != nil {
		return ctrl.Result{}, err
	}
	if orphan(node, machines) {
		return r.bereave(ctx, node, machines)
	}
	machine := machineOf(node.Name, machines)
	if machine == nil {
		return ctrl.Result{}, nil
	}
	if victim := impersonated(node, machines); victim != nil {
		r.refuse(ctx, node, victim)
		return ctrl.Result{}, nil
	}
	if node.Annotations[machineAnnotation] == machine.Name {
		return ctrl.Result{}, r.markLeaving(ctx, node, machine)
	}
	taints, err := taintsOf(machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, upsert.Patch(ctx, r.Guest, node, func() { shape(node, machine, taints) })
}

// bereave handles a node whose Machine is gone.
func (r *Reconciler) bereave(ctx context.Context, node *corev1.Node, machines []clusterv1.Machine) (ctrl.Result, error) {
	restored, since, err := r.restored(ctx, node)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case restored:
		return r.reclaim(ctx, node, machines, since)
	}
	return r.retire(ctx, node)
}

func (r *Reconciler) machines(ctx context.Context, reader client.Reader) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := reader.List(ctx, list, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	return list.Items, nil
}

func machineOf(node string, machines []clusterv1.Machine) *clusterv1.Machine {
	for i := range machines {
		if slices.Contains(nodeNames(&machines[i]), node) {
			return &machines[i]
		}
	}
	return nil
}

func taintsOf(machine *clusterv1.Machine) ([]corev1.Taint, error) {
	text, ok := machine.Annotations[taintsAnnotation]
	if !ok || text == "" {
		return nil, nil
	}
	var taints []corev1.Taint
	if err := json.Unmarshal([]byte(text), &taints); err != nil {
		return nil, fmt.Errorf("annotation %s of Machine %s is not a list of taints: %w", taintsAnnotation, machine.Name, err)
	}
	return taints, nil
}

// shape stores the Machine of the node. It sets labels and taints once: after that, the user may change them.
func shape(node *corev1.Node, machine *clusterv1.Machine, taints []corev1.Taint) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[machineAnnotation] = machine.Name
	if node.Annotations[syncedAnnotation] == "true" {
		return
	}
	node.Annotations[syncedAnnotation] = "true"
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	for key, value := range machine.Labels {
		if name, ok := strings.CutPrefix(key, labelPrefix); ok {
			node.Labels[name] = value
		}
	}
	if pool := machine.Annotations[nodePoolKey]; pool != "" {
		node.Labels[nodePoolKey] = pool[strings.LastIndex(pool, "/")+1:]
	}
	for _, taint := range taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
}
