package nodepool

import (
	"context"
	"fmt"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// reconcilePause hands a pause on to Cluster API and ends the pass. The pool's machines go on as they are.
func (r *Reconciler) reconcilePause(ctx context.Context, s *scope) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolReconciliationActiveConditionType
	state := pause.Until(s.pool.Spec.PausedUntil, s.now)
	switch {
	case state.Invalid:
		s.reject(conditionType, hyperv1.InvalidPausedUntilValueReason, fmt.Sprintf(
			"spec.pausedUntil is %s: set an RFC 3339 time or true, or remove it; the pool is reconciled meanwhile", strconv.Quote(*s.pool.Spec.PausedUntil)))
		return ctrl.Result{}, nil
	case !state.Paused:
		s.judgeActive()
		return ctrl.Result{}, nil
	}
	s.reject(conditionType, hyperv1.ReconciliationPausedReason, "Reconciliation is paused until "+state.Text)
	for _, obj := range []client.Object{&clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}} {
		if err := r.pauseObject(ctx, s, obj); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: state.For}, phase.ErrStop
}

func (s *scope) judgeActive() {
	s.accept(hyperv1.NodePoolReconciliationActiveConditionType, "Reconciliation is active")
	c := s.verdicts[hyperv1.NodePoolReconciliationActiveConditionType]
	c.Reason = "ReconciliationActive"
	s.judge(c)
}

// pauseObject pauses a MachineDeployment or MachineSet of the pool if there is one. Only a pass that is not paused takes
// the annotation off again.
func (r *Reconciler) pauseObject(ctx context.Context, s *scope, obj client.Object) error {
	key := ctrlKey(s.namespace(), s.pool.Name)
	if err := r.Client.Get(ctx, key, obj); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("reading %T %s to pause it: %w", obj, key, err)
	}
	return upsert.Patch(ctx, r.Client, obj, func() { annotate(obj, clusterv1.PausedAnnotation, "true") })
}

func ctrlKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
