// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/condition"
)

// stopWorkloads ends what runs in the control plane's namespace: first what uses etcd, then etcd, so that each stops at once.
// Deleting the namespace would end them too, but all together, and would look again only after half the longest grace
// period.
func (r *Reconciler) stopWorkloads(ctx context.Context, s *scope) (string, error) {
	for _, group := range []struct {
		// owner is the kind that makes the pods of the group; kinds are all that would make new ones.
		owner string
		kinds []client.Object
	}{
		{"ReplicaSet", []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}}},
		{"StatefulSet", []client.Object{&appsv1.StatefulSet{}}},
	} {
		for _, kind := range group.kinds {
			err := r.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
			if err != nil {
				return "", fmt.Errorf("deleting the workloads in namespace %s: %w", s.namespace, err)
			}
		}
		running, err := r.podsOf(ctx, s, group.owner)
		if err != nil {
			return "", err
		}
		if len(running) > 0 {
			return fmt.Sprintf("Waiting for %s in namespace %s to stop: %s", condition.Count(len(running), "pod"), s.namespace, firstFew(running)), nil
		}
	}
	return "", nil
}

// podsOf names the pods that one kind of controller has left, and their nodes: a pod of a node that is gone stays until somebody
// deletes the Node.
func (r *Reconciler) podsOf(ctx context.Context, s *scope, owner string) ([]string, error) {
	pods := &corev1.PodList{}
	if err := r.LiveReader.List(ctx, pods, client.InNamespace(s.namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods in namespace %s: %w", s.namespace, err)
	}
	var names []string
	for i := range pods.Items {
		if controller := metav1.GetControllerOf(&pods.Items[i]); controller != nil && controller.Kind == owner {
			names = append(names, fmt.Sprintf("%s on node %q", pods.Items[i].Name, pods.Items[i].Spec.NodeName))
		}
	}
	return names, nil
}

// firstFew is the beginning of a list that may be long.
func firstFew(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
