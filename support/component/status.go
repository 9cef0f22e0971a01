// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/upsert"
)

// report writes the component's ControlPlaneComponent.
func (c *Component) report(ctx context.Context, scope *Scope, result outcome) error {
	cpc := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: scope.HCP.Namespace, Name: c.Name}}
	_, err := upsert.Object(ctx, scope.Client, cpc, func() error {
		return controllerutil.SetControllerReference(scope.HCP, cpc, scope.Client.Scheme())
	})
	if err != nil {
		return err
	}
	before := cpc.DeepCopy()
	cpc.Status = c.status(cpc.Status, scope, result)
	if scope.reported == nil {
		scope.reported = map[string]*hyperv1.ControlPlaneComponent{}
	}
	scope.reported[c.Name] = cpc
	if equality.Semantic.DeepEqual(before.Status, cpc.Status) {
		return nil
	}
	if err := scope.Client.Status().Patch(ctx, cpc, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of ControlPlaneComponent %s: %w", c.Name, err)
	}
	return nil
}

// status computes the new status from the old one and the result of the reconcile.
func (c *Component) status(old hyperv1.ControlPlaneComponentStatus, scope *Scope, result outcome) hyperv1.ControlPlaneComponentStatus {
	next := *old.DeepCopy()
	h := c.assess(next.Conditions, result)
	generation := max(scope.HCP.Generation, 1)
	next.Conditions = condition.Merge(next.Conditions, generation, h.available, h.rolledOut)
	next.ObservedGeneration = generation
	if result.resources != nil && result.err == nil {
		next.Resources = result.resources
	}
	// Other components wait for this version, so it is set only when all pods run it.
	if h.rolledOut.Status == metav1.ConditionTrue {
		next.Version = scope.Version
	}
	return next
}

// assess returns the two conditions for the result of a reconcile. While dependencies or an error prevent a rollout,
// the last known availability stays.
func (c *Component) assess(old []metav1.Condition, result outcome) health {
	known := unavailable(reasonNotFound, fmt.Sprintf("Component %s is not there yet", c.Name))
	if last := meta.FindStatusCondition(old, string(hyperv1.ControlPlaneComponentAvailable)); last != nil {
		known = *last
	}
	switch {
	case result.err != nil:
		return health{available: known, rolledOut: rollingOut(ReasonError, result.err.Error())}
	case len(result.unmet) > 0:
		return health{available: known, rolledOut: rollingOut(reasonWaitingForDependency, waitingFor(result.unmet))}
	case result.health == nil:
		message := fmt.Sprintf("Component %s was just created", c.Name)
		return health{available: unavailable(reasonNotFound, message), rolledOut: rollingOut(reasonWaitingForRollout, message)}
	default:
		return *result.health
	}
}
