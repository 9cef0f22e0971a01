// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/upsert"
)

func pauseOf(_ context.Context, s *scope) (pause.State, error) {
	return pause.Until(s.HC.Spec.PausedUntil, s.Now), nil
}

// reconcilePause propagates the start or end of a pause to the control plane and to Cluster API. It runs first, so that
// no outage prevents a pause.
func (r *Reconciler) reconcilePause(ctx context.Context, s *scope) (ctrl.Result, error) {
	return ctrl.Result{}, errors.Join(
		r.patchControlPlane(ctx, s, func() { s.HCP.Spec.PausedUntil = s.HC.Spec.PausedUntil }),
		r.pauseCluster(ctx, s, pause.Until(s.HC.Spec.PausedUntil, s.Now).Paused),
	)
}

// patchControlPlane patches the HostedControlPlane if it exists.
func (r *Reconciler) patchControlPlane(ctx context.Context, s *scope, mutate func()) error {
	if s.HCP == nil {
		return nil
	}
	return client.IgnoreNotFound(upsert.Patch(ctx, r.Client, s.HCP, mutate))
}

// pauseCluster pauses or resumes the Cluster API Cluster if it exists.
func (r *Reconciler) pauseCluster(ctx context.Context, s *scope, paused bool) error {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Spec.InfraID}}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("reading Cluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	if ptr.Deref(cluster.Spec.Paused, false) == paused {
		return nil
	}
	return client.IgnoreNotFound(upsert.Patch(ctx, r.Client, cluster, func() { cluster.Spec.Paused = ptr.To(paused) }))
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
