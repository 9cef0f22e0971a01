// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/upsert"
)

const (
	// grace is how long a node must not have been Ready before it counts as stopped. A restart of the kubelet or a short
	// network outage takes less time.
	grace = 5 * time.Minute
	// deletionInterval is the time between two deletions. If many Machines disappear at once, users have time to pause the
	// cluster before its nodes are deleted.
	deletionInterval = time.Minute
)

// NewDeletions returns the rate limiter for Reconciler.Deletions: one Node a minute.
func NewDeletions(c clock.PassiveClock) flowcontrol.PassiveRateLimiter {
	return flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(1/deletionInterval.Seconds()), 1, c)
}

// orphan reports whether the Machine that a node was created for is gone. A Machine that exists without a node
// reference, such as one that was restored without its status, keeps its node.
func orphan(node *corev1.Node, machines []clusterv1.Machine) bool {
	machine := node.Annotations[machineAnnotation]
	return machine != "" && !slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return m.Name == machine })
}

// markLeaving stores on a node that its Machine is being deleted. Cluster API deletes the node last, and not at all if
// it did not know the node or does not reach the guest in time.
func (r *Reconciler) markLeaving(ctx context.Context, node *corev1.Node, machine *clusterv1.Machine) error {
	if machine.DeletionTimestamp == nil || node.DeletionTimestamp != nil || node.Annotations[leavingAnnotation] == machine.Name {
		return nil
	}
	return upsert.Patch(ctx, r.Guest, node, func() { node.Annotations[leavingAnnotation] = machine.Name })
}

// retire deletes a node whose Machine is gone, once it is certain that the node no longer runs. A missing Machine
// alone proves nothing: a restored management cluster has no Machines at first, while all nodes run.
func (r *Reconciler) retire(ctx context.Context, node *corev1.Node) (ctrl.Result, error) {
	machines, err := r.machines(ctx, r.Live)
	if err != nil {
		return ctrl.Result{}, err
	}
	mayGo, wait := r.mayGo(node, machines)
	if !mayGo {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if !wasDeleted(node, machines) && !r.Deletions.TryAccept() {
		return ctrl.Result{RequeueAfter: deletionInterval}, nil
	}
	err = r.Guest.Delete(ctx, node, client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting Node %s, whose Machine %s is gone: %w", node.Name, node.Annotations[machineAnnotation], err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a node whose Machine is gone", "machine", node.Annotations[machineAnnotation])
	return ctrl.Result{}, nil
}

// mayGo decides by the current Machines whether a node may be deleted:
//
//   - immediately if its Machine was seen being deleted,
//   - otherwise never if there is no Machine at all, or while the node is Ready and therefore in use,
//   - otherwise immediately if its hardware was allocated to another Machine of this cluster, which could not join
//     while the old Node exists,
//   - otherwise after the grace period.
//
// wait is the remaining time; zero if only a change can lead to a deletion.
func (r *Reconciler) mayGo(node *corev1.Node, machines []clusterv1.Machine) (mayGo bool, wait time.Duration) {
	if wasDeleted(node, machines) {
		return true, 0
	}
	ready, since := readiness(node)
	if len(machines) == 0 || ready || !orphan(node, machines) {
		return false, 0
	}
	if hardwareOf(node, machines) {
		return true, 0
	}
	if wait = grace - r.Clock.Since(since); wait > 0 {
		return false, wait
	}
	return true, 0
}

// wasDeleted reports whether the node's Machine was last seen being deleted and is gone now. It is false if another
// Machine has the node's name or hardware: that Machine may have joined as this node.
func wasDeleted(node *corev1.Node, machines []clusterv1.Machine) bool {
	leaving := node.Annotations[leavingAnnotation]
	return leaving != "" && leaving == node.Annotations[machineAnnotation] && orphan(node, machines) &&
		machineOf(node.Name, machines) == nil && !hardwareOf(node, machines)
}

// hardwareOf reports whether one of the Machines has the hardware that the node ran on.
func hardwareOf(node *corev1.Node, machines []clusterv1.Machine) bool {
	return node.Spec.ProviderID != "" && slices.ContainsFunc(machines, func(m clusterv1.Machine) bool {
		return m.Spec.ProviderID == node.Spec.ProviderID
	})
}

// readiness reports whether a node is Ready, and since when its condition has that status.
func readiness(node *corev1.Node) (ready bool, since time.Time) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return false, node.CreationTimestamp.Time
}
