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

// Release lets go of the Deployment of a held component, if there is one.
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

// endDeletion ends a deletion of the component's Deployment by hand, so that the next pass makes a new one: its finalizer
// would keep it terminating, and nobody would look after its pods, for as long as the cluster lives.
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
