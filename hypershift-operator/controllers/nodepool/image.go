// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
)

// keepImage lets the platform maintain the image that the pool's machines boot from. It starts early because it may
// take as long as rendering the configuration. Only the machines wait for it.
func (r *Reconciler) keepImage(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	keeper, ok := s.Platform.(platform.ImageKeeper)
	if !ok {
		return phase.Done()
	}
	kept, err := keeper.KeepImage(ctx, r.Client, s.View())
	if err != nil {
		kept = platform.Kept{Missing: true, Status: s.Pool.Status.Platform,
			Condition: condition.Unknown(hyperv1.NodePoolValidPlatformImageType, hyperv1.ReconciliationErrorReason, err.Error())}
	}
	s.Kept = &kept
	s.SetCondition(kept.Condition)
	return ctrl.Result{RequeueAfter: kept.CheckAgain}, err
}

// dropImage waits until the platform has deleted the image. The machines are already gone.
func (r *Reconciler) dropImage(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	keeper, ok := s.Platform.(platform.ImageKeeper)
	if !ok {
		return phase.Done()
	}
	left, err := keeper.DropImage(ctx, r.Client, s.View())
	if err != nil || left == "" {
		return ctrl.Result{}, err
	}
	s.SetFalse(hyperv1.NodePoolReadyConditionType, "Deleting", left)
	return ctrl.Result{RequeueAfter: deletionPoll}, phase.ErrStop
}
