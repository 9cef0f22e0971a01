// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// restoreGrace is how long a restored node without a Machine is kept, from the creation of its control plane.
// Administrators restore the pools one after the other, and the provider then finds the machines of each pool.
const restoreGrace = time.Hour

// restored reports whether a node is older than its control plane, and when the control plane was created. Such a node
// was restored with a snapshot of etcd. The Machine that it names belonged to the lost management cluster. A missing
// Machine of that name therefore does not mean that the node has stopped.
func (r *Reconciler) restored(ctx context.Context, node *corev1.Node) (bool, time.Time, error) {
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Pause.Management.Get(ctx, r.Pause.ControlPlane, hcp); err != nil {
		return false, time.Time{}, fmt.Errorf("reading HostedControlPlane %s: %w", r.Pause.ControlPlane, err)
	}
	return node.CreationTimestamp.Before(&hcp.CreationTimestamp), hcp.CreationTimestamp.Time, nil
}

// reclaim assigns a restored node to the Machine that now has its hardware, Ready or not. The machine was not
// reinstalled, so the node belongs to it. A node without such a Machine is kept while any Machine still waits for its
// node.
func (r *Reconciler) reclaim(ctx context.Context, node *corev1.Node, machines []clusterv1.Machine, since time.Time) (ctrl.Result, error) {
	if machine := claimant(node, machines); machine != nil {
		return ctrl.Result{}, upsert.Patch(ctx, r.Guest, node, func() {
			node.Annotations[machineAnnotation] = machine.Name
			delete(node.Annotations, leavingAnnotation)
		})
	}
	if wait := restoreGrace - r.Clock.Since(since); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if slices.ContainsFunc(machines, looksForNode) {
		return ctrl.Result{RequeueAfter: grace}, nil
	}
	return r.retire(ctx, node)
}

func claimant(node *corev1.Node, machines []clusterv1.Machine) *clusterv1.Machine {
	for i := range machines {
		m := &machines[i]
		if m.Spec.ProviderID == node.Spec.ProviderID && m.Spec.ProviderID != "" || m.Status.NodeRef.Name == node.Name {
			return m
		}
	}
	return nil
}

func looksForNode(m clusterv1.Machine) bool {
	return m.DeletionTimestamp == nil && m.Status.NodeRef.Name == ""
}
