// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/finalizer"
)

// heldBy is the finalizer of the Deployments of held components.
const heldBy = hyperv1.ControlPlaneComponentFinalizer

// Release removes the finalizer from the Deployment of a held component, if the Deployment exists.
func Release(ctx context.Context, c client.Client, key client.ObjectKey) error {
	live := &appsv1.Deployment{}
	err := c.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return finalizer.Remove(ctx, c, live, heldBy)
}

// endDeletion completes the deletion of the component's Deployment by a user, so that the next reconcile creates a new
// one. Otherwise the finalizer would keep the Deployment terminating for the lifetime of the cluster, and no controller
// would manage its pods.
func (c *Component) endDeletion(ctx context.Context, scope *Scope) (terminating bool, err error) {
	live, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: c.Name}
	err = scope.Client.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	if live.DeletionTimestamp == nil {
		return false, nil
	}
	return true, Release(ctx, scope.Client, key)
}
