// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
)

// Reasons of the condition ConfigOperatorReconciliationSucceeded.
const (
	reasonSuccess = "ReconcileSuccess"
	reasonError   = "ReconcileError"
)

// report writes the result of the reconcile to the HostedControlPlane.
func (r *Reconciler) report(ctx context.Context, s *scope, failure error) error {
	if s.paused {
		return nil
	}
	t := string(hyperv1.ConfigOperatorReconciliationSucceeded)
	c := condition.True(t, reasonSuccess, "")
	if failure != nil {
		c = condition.False(t, reasonError, failure.Error())
	}
	return SetCondition(ctx, r.Management, s.hcp, c)
}

// SetCondition writes one condition of a HostedControlPlane and no other: the control-plane-operator writes the rest of
// the same list concurrently.
func SetCondition(ctx context.Context, c client.Client, hcp *hyperv1.HostedControlPlane, wanted metav1.Condition) error {
	merged := condition.Merge(hcp.Status.Conditions, hcp.Generation, wanted)
	next, old := meta.FindStatusCondition(merged, wanted.Type), meta.FindStatusCondition(hcp.Status.Conditions, wanted.Type)
	if old != nil && *old == *next {
		return nil
	}
	fields := map[string]any{
		"type": next.Type, "status": string(next.Status), "reason": next.Reason, "message": next.Message,
		"lastTransitionTime": next.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
		"observedGeneration": next.ObservedGeneration,
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": hcp.Name, "namespace": hcp.Namespace},
		"status":   map[string]any{"conditions": []any{fields}},
	}}
	patch.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
	// Each condition has a separate field owner, since an owner that omits a condition from a patch removes it.
	owner := client.FieldOwner(component.GuestFieldOwner + "-" + wanted.Type)
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("writing condition %s of HostedControlPlane %s: %w", wanted.Type, hcp.Name, err)
	}
	return nil
}
