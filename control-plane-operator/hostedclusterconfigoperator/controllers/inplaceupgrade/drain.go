// SPDX-License-Identifier: Apache-2.0

package inplaceupgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/condition"
)

// leftover is a pod that is still on a node that is being drained.
type leftover struct {
	// pod is namespace/name.
	pod string
	// why is the API server's answer to its eviction; empty while the pod terminates.
	why string
}

// drain requests the eviction of the pods of a node, which honors disruption budgets, and returns the remaining pods.
// It does not wait.
func (r *Reconciler) drain(ctx context.Context, m *member) ([]leftover, error) {
	pods := &corev1.PodList{}
	if err := r.GuestLive.List(ctx, pods, client.MatchingFields{"spec.nodeName": m.node.Name}); err != nil {
		return nil, fmt.Errorf("listing the Pods of Node %s: %w", m.node.Name, err)
	}
	var left []leftover
	for i := range pods.Items {
		pod := &pods.Items[i]
		if stays(pod) || !pod.DeletionTimestamp.IsZero() && !m.ready() {
			// The kubelet of a node that is not Ready cannot confirm that its pods have stopped.
			continue
		}
		gone, why, err := r.evict(ctx, pod)
		if err != nil {
			return nil, err
		}
		if !gone {
			left = append(left, leftover{pod: pod.Namespace + "/" + pod.Name, why: why})
		}
	}
	// Pods that need an action of the user come first.
	slices.SortFunc(left, func(a, b leftover) int {
		if (a.why == "") != (b.why == "") {
			return strings.Compare(b.why, a.why)
		}
		return strings.Compare(a.pod, b.pod)
	})
	return left, nil
}

// stays reports whether a pod is not evicted. Pods of DaemonSets and static pods would be recreated immediately, and
// finished pods need no eviction. Cluster API honors the same label when it drains a node.
func stays(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(pod)
	return mirror || owner != nil && owner.Kind == "DaemonSet" ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		strings.EqualFold(pod.Labels[clusterv1.PodDrainLabel], "skip")
}

// evict asks the API server to evict a pod. A rejection is reported to users: its cause is usually a disruption budget.
func (r *Reconciler) evict(ctx context.Context, pod *corev1.Pod) (gone bool, why string, err error) {
	if !pod.DeletionTimestamp.IsZero() {
		return false, "", nil
	}
	if strings.EqualFold(pod.Labels[clusterv1.PodDrainLabel], "wait-completed") {
		return false, "its label " + clusterv1.PodDrainLabel + " asks to wait until it has completed", nil
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
	err = r.GuestLive.SubResource("eviction").Create(ctx, pod, eviction)
	switch {
	case err == nil:
		return false, "", nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The pod is gone, or a new pod has its name.
		return apierrors.IsNotFound(err), "", nil
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return false, strings.TrimSuffix(condition.Shorten(err.Error(), maxSentence), "."), nil
	}
	return false, "", fmt.Errorf("evicting Pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// describe describes what a drain waits for.
func describe(left []leftover) string {
	text := fmt.Sprintf(": %d pods are left, ", len(left))
	if len(left) == 1 {
		text = ": waiting for "
	}
	text += "Pod " + left[0].pod
	if left[0].why != "" {
		text += ": " + left[0].why
	}
	return text
}
