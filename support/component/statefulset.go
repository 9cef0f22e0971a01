// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replaceStatefulSet deletes a StatefulSet whose volumes have a different size, because that size is immutable. It
// keeps the pods and volumes, which the next StatefulSet adopts unchanged. It reports whether the new StatefulSet can
// be applied.
func (c *Component) replaceStatefulSet(ctx context.Context, scope *Scope, wanted *appsv1.StatefulSet) (bool, error) {
	live := &appsv1.StatefulSet{}
	err := scope.Client.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading StatefulSet %s: %w", wanted.Name, err)
	}
	if !live.DeletionTimestamp.IsZero() {
		// An apply now would be lost with the deletion.
		return false, nil
	}
	if slices.EqualFunc(live.Spec.VolumeClaimTemplates, wanted.Spec.VolumeClaimTemplates, sameSize) {
		return true, nil
	}
	err = scope.Client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("replacing StatefulSet %s by one with other volumes: %w", wanted.Name, err)
	}
	return false, nil
}

func sameSize(a, b corev1.PersistentVolumeClaim) bool {
	return a.Name == b.Name && a.Spec.Resources.Requests.Storage().Cmp(*b.Spec.Resources.Requests.Storage()) == 0
}
