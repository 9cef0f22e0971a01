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

// leftover is a pod that is still on a node.
type leftover struct {
	// pod is namespace/name.
	pod string
	// why is what the API server answered to its eviction; empty while it stops.
	why string
}

// drain asks for the eviction of the pods of a node, by which disruption budgets are heeded, and tells which are still there. It does not wait.
func (r *Reconciler) drain(ctx context.Context, m *member) ([]leftover, error) {
	pods := &corev1.PodList{}
	if err := r.GuestLive.List(ctx, pods, client.MatchingFields{"spec.nodeName": m.node.Name}); err != nil {
		return nil, fmt.Errorf("listing the Pods of Node %s: %w", m.node.Name, err)
	}
	var left []leftover
	for i := range pods.Items {
		pod := &pods.Items[i]
		if stays(pod) || !pod.DeletionTimestamp.IsZero() && !m.ready() {
			// Nobody says of a node that is not Ready that its pods have stopped.
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
	// Those that somebody can do something about come first.
	slices.SortFunc(left, func(a, b leftover) int {
		if (a.why == "") != (b.why == "") {
			return strings.Compare(b.why, a.why)
		}
		return strings.Compare(a.pod, b.pod)
	})
	return left, nil
}

// stays tells whether a pod is not evicted: those of DaemonSets and of the kubelet's own folder come back at once, those that have ended need nothing,
// and Cluster API heeds its label too when it drains a node.
func stays(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(pod)
	return mirror || owner != nil && owner.Kind == "DaemonSet" ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		strings.EqualFold(pod.Labels[clusterv1.PodDrainLabel], "skip")
}

// evict asks the API server to stop a pod. What it refuses is for people to read: a budget, for the most part.
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
		// It is gone, or another one has its name.
		return apierrors.IsNotFound(err), "", nil
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return false, strings.TrimSuffix(condition.Shorten(err.Error(), maxSentence), "."), nil
	}
	return false, "", fmt.Errorf("evicting Pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// describe says what a drain waits for.
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
