// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/condition"
)

// clientsGrace is the grace period in seconds for the pods of a deleted control plane. The nodes are gone and no client
// uses the API any more. Without it, a highly available kube-apiserver would run for another 70 s so that load
// balancers notice its shutdown.
const clientsGrace = 2

// stopWorkloads stops the workloads in the control plane's namespace: first the clients of etcd, then etcd, so that
// each stops immediately. Deleting the namespace would stop them all together, and would check again only after half
// the longest grace period.
func (r Deleter) stopWorkloads(ctx context.Context, s *cluster.Scope) (string, error) {
	for _, group := range []struct {
		// owner is the kind that controls the pods of the group; kinds are all kinds that could recreate them.
		owner string
		kinds []client.Object
		// grace is the termination grace period in seconds; zero means the grace period of each pod.
		grace int64
	}{
		{"ReplicaSet", []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}}, clientsGrace},
		{"StatefulSet", []client.Object{&appsv1.StatefulSet{}}, 0},
	} {
		for _, kind := range group.kinds {
			err := r.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.Namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
			if err != nil {
				return "", fmt.Errorf("deleting the workloads in namespace %s: %w", s.Namespace, err)
			}
		}
		running, err := r.podsOf(ctx, s, group.owner)
		if err != nil {
			return "", err
		}
		if group.grace > 0 {
			if err := r.hurry(ctx, running, group.grace); err != nil {
				return "", err
			}
		}
		if len(running) > 0 {
			return fmt.Sprintf("Waiting for %s in namespace %s to stop: %s",
				condition.Count(len(running), "pod"), s.Namespace, firstFew(placed(running))), nil
		}
	}
	return "", nil
}

// podsOf lists the remaining pods that one kind of controller owns.
func (r Deleter) podsOf(ctx context.Context, s *cluster.Scope, owner string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.LiveReader.List(ctx, pods, client.InNamespace(s.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods in namespace %s: %w", s.Namespace, err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		controller := metav1.GetControllerOf(&pod)
		return controller == nil || controller.Kind != owner
	}), nil
}

// hurry shortens the termination grace period of pods, including pods that are already being deleted.
func (r Deleter) hurry(ctx context.Context, pods []corev1.Pod, grace int64) error {
	var failures []error
	for i := range pods {
		if left := pods[i].DeletionGracePeriodSeconds; left != nil && *left <= grace {
			continue
		}
		err := r.Client.Delete(ctx, &pods[i], client.GracePeriodSeconds(grace), client.Preconditions{UID: &pods[i].UID})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			err = fmt.Errorf("deleting pod %s in namespace %s: %w", pods[i].Name, pods[i].Namespace, err)
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// placed returns the names of pods with their nodes: a pod on a lost node stays until its Node is deleted.
func placed(pods []corev1.Pod) []string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = fmt.Sprintf("%s on node %q", pods[i].Name, pods[i].Spec.NodeName)
	}
	return names
}

// firstFew returns the beginning of a list that may be long.
func firstFew(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
