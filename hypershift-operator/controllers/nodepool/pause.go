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
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/upsert"
)

func pauseOf(_ context.Context, s *scope) (pause.State, error) {
	return pause.Until(s.pool.Spec.PausedUntil, s.now), nil
}

func (s *scope) paused() bool {
	return pause.Until(s.pool.Spec.PausedUntil, s.now).Paused
}

// reconcilePause pauses or resumes the pool's Cluster API objects. The machines of a paused pool remain unchanged,
// including failing ones.
func (r *Reconciler) reconcilePause(ctx context.Context, s *scope) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolReconciliationActiveConditionType
	state := pause.Until(s.pool.Spec.PausedUntil, s.now)
	switch {
	case state.Invalid:
		s.reject(conditionType, hyperv1.InvalidPausedUntilValueReason, fmt.Sprintf(
			"spec.pausedUntil is %s: set an RFC 3339 time or true, or remove it; until then, the pool is reconciled", strconv.Quote(*s.pool.Spec.PausedUntil)))
	case state.Paused:
		s.reject(conditionType, hyperv1.ReconciliationPausedReason, "Reconciliation is paused until "+state.Text)
	default:
		s.reportActive()
	}
	var failures []error
	for _, obj := range []client.Object{&clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.MachineHealthCheck{}} {
		failures = append(failures, r.pauseObject(ctx, s, obj, state.Paused))
	}
	return ctrl.Result{}, errors.Join(failures...)
}

func (s *scope) reportActive() {
	s.accept(hyperv1.NodePoolReconciliationActiveConditionType, "Reconciliation is active")
	c := s.conditions[hyperv1.NodePoolReconciliationActiveConditionType]
	c.Reason = hyperv1.NodePoolReconciliationActiveReason
	s.setCondition(c)
}

// pauseObject pauses or resumes a Cluster API object of the pool if there is one.
func (r *Reconciler) pauseObject(ctx context.Context, s *scope, obj client.Object, paused bool) error {
	key := ctrlKey(s.namespace(), s.pool.Name)
	if err := r.Client.Get(ctx, key, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("reading %T %s to pause or resume it: %w", obj, key, err)
	}
	return client.IgnoreNotFound(r.setPaused(ctx, obj, paused))
}

func (r *Reconciler) setPaused(ctx context.Context, obj client.Object, paused bool) error {
	return upsert.Patch(ctx, r.Client, obj, func() {
		if paused {
			annotate(obj, clusterv1.PausedAnnotation, "true")
			return
		}
		delete(obj.GetAnnotations(), clusterv1.PausedAnnotation)
	})
}

func ctrlKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
