// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/pause"
)

func pauseOf(_ context.Context, s *scope) (pause.State, error) {
	return pause.Until(s.HC.Spec.PausedUntil, s.Now), nil
}

// reconcilePause propagates the start or end of a pause to the control plane and to Cluster API. It runs first, so that
// no outage prevents a pause.
func (r *Reconciler) reconcilePause(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, errors.Join(
		s.PatchControlPlane(ctx, r.Client, func() { s.HCP.Spec.PausedUntil = s.HC.Spec.PausedUntil }),
		s.PauseMachines(ctx, r.Client, pause.Until(s.HC.Spec.PausedUntil, s.Now).Paused),
	)
}

// reconciliationActive reports whether the cluster is paused. Its message also reports whether the control plane waits
// for its turn to be updated.
func reconciliationActive(pausedUntil *string, now time.Time, waitsForTurn int) metav1.Condition {
	conditionType := string(hyperv1.ReconciliationActive)
	p := pause.Until(pausedUntil, now)
	if p.Invalid {
		return condition.False(conditionType, hyperv1.InvalidPausedUntilValueReason, fmt.Sprintf(
			"spec.pausedUntil is %s: set an RFC 3339 time or true, or remove it; until then, the cluster is reconciled",
			strconv.Quote(*pausedUntil)))
	}
	if p.Paused {
		return condition.False(conditionType, hyperv1.ReconciliationPausedReason, "Reconciliation is paused until "+p.Text)
	}
	message := "Reconciliation is active"
	if waitsForTurn > 0 {
		message += fmt.Sprintf(". The control plane still has the control-plane-operator of an earlier version and waits: "+
			"the operator changes at most %d control planes at the same time", waitsForTurn)
	}
	return condition.True(conditionType, string(hyperv1.ReconciliationActive), message)
}
