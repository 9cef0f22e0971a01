// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/pause"
)

func pauseOf(_ context.Context, s *reconciliation) (pause.State, error) {
	return pause.Until(s.Pool.Spec.PausedUntil, s.Now), nil
}

// reconcilePause pauses or resumes the pool's Cluster API objects. The machines of a paused pool remain unchanged,
// including failing ones.
func (r *Reconciler) reconcilePause(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolReconciliationActiveConditionType
	state := pause.Until(s.Pool.Spec.PausedUntil, s.Now)
	switch {
	case state.Invalid:
		s.SetFalse(conditionType, hyperv1.InvalidPausedUntilValueReason, fmt.Sprintf(
			"spec.pausedUntil is %s: set an RFC 3339 time or true, or remove it; until then, the pool is reconciled", strconv.Quote(*s.Pool.Spec.PausedUntil)))
	case state.Paused:
		s.SetFalse(conditionType, hyperv1.ReconciliationPausedReason, "Reconciliation is paused until "+state.Text)
	default:
		s.reportActive()
	}
	var failures []error
	for _, obj := range []client.Object{&clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.MachineHealthCheck{}} {
		failures = append(failures, r.pauseObject(ctx, s, obj, state.Paused))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

func (s *reconciliation) reportActive() {
	s.SetTrue(hyperv1.NodePoolReconciliationActiveConditionType, "Reconciliation is active")
	c := s.Conditions[hyperv1.NodePoolReconciliationActiveConditionType]
	c.Reason = hyperv1.NodePoolReconciliationActiveReason
	s.SetCondition(c)
}

// pauseObject pauses or resumes a Cluster API object of the pool if there is one.
func (r *Reconciler) pauseObject(ctx context.Context, s *reconciliation, obj client.Object, paused bool) error {
	key := ctrlKey(s.Namespace(), s.Pool.Name)
	if err := r.Client.Get(ctx, key, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("reading %T %s to pause or resume it: %w", obj, key, err)
	}
	return client.IgnoreNotFound(scope.SetPaused(ctx, r.Client, obj, paused))
}

func ctrlKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
