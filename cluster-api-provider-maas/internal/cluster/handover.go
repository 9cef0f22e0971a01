// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// reasonNotReleased is the reason on a MaasCluster with machines that MAAS has not released.
const reasonNotReleased = "MachinesNotReleased"

// takeBack continues the releases that were not done when their MaasMachines were deleted. It removes a record when
// MAAS reports that nothing is left to release: the machine is free, broken, gone, or allocated to another user.
func (r *Reconciler) takeBack(ctx context.Context, s *scope) (ctrl.Result, error) {
	records := handover.Records.Of(s.infra)
	if s.problem != nil || len(records) == 0 {
		return phase.Done()
	}
	var result ctrl.Result
	s.unreleased = map[string]lifecycle.Outcome{}
	for _, id := range record.IDs(records) {
		if records[id].UID == "" {
			continue // The annotation is invalid; an administrator must remove it.
		}
		left := r.Machines.GiveBack(ctx, s.infra, s.identity, id, records[id])
		if ctx.Err() != nil {
			return ctrl.Result{}, ctx.Err()
		}
		if left.Action != lifecycle.Gone {
			s.unreleased[id] = left
			if left.Action == lifecycle.Wait {
				result = ctrl.Result{RequeueAfter: problemEvery}
			}
			continue
		}
		if err := upsert.Patch(ctx, r.Client, s.infra, func() { handover.Records.Remove(s.infra, id) }); err != nil {
			return ctrl.Result{}, err
		}
		r.normal(s.infra, lifecycle.ReasonReleased, fmt.Sprintf("machine %s (%s) of MaasMachine %s, which is gone: %s", records[id].Hostname, id, records[id].Machine, left.Message))
	}
	return result, nil
}

// unreleasedMachines describes the machines that are not released, with causes and remedies; empty if there is none.
func (s *scope) unreleasedMachines() string {
	records := handover.Records.Of(s.infra)
	var told []string
	for _, id := range record.IDs(records) {
		told = append(told, records[id].Describe(s.infra, id, cmp.Or(s.unreleased[id].Message, records[id].Words)))
	}
	return strings.Join(told[:min(len(told), toldAtMost)], ". ")
}

// awaitsRecords reports whether the deletion of a MaasCluster must wait for delegated releases.
func (s *scope) awaitsRecords() bool {
	words := s.unreleasedMachines()
	if words == "" {
		return false
	}
	s.left = &machine.Problem{Reason: reasonNotReleased, Message: words}
	if s.problem != nil {
		s.left = &machine.Problem{Reason: s.problem.Reason, Message: s.problem.Message + ". " + words}
	}
	return true
}

// releasedCondition returns the condition for delegated releases. It is present only if there is or was one.
func (s *scope) releasedCondition() []metav1.Condition {
	words := s.unreleasedMachines()
	switch {
	case words != "":
		return []metav1.Condition{condition.False(ConditionReleased, reasonNotReleased, words)}
	case meta.FindStatusCondition(s.infra.Status.Conditions, ConditionReleased) != nil:
		return []metav1.Condition{condition.True(ConditionReleased, lifecycle.ReasonReleased, "")}
	}
	return nil
}
