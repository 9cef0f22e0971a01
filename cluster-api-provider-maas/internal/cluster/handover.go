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

// reasonNotReleased is that of a MaasCluster whose machines MAAS has not all taken back.
const reasonNotReleased = "MachinesNotReleased"

// takeBack goes on with the machines that MAAS had not taken back when their MaasMachines went. A record goes when MAAS itself says that
// nothing is left to give back: the machine is free, broken, gone, or somebody else's.
func (r *Reconciler) takeBack(ctx context.Context, s *scope) (ctrl.Result, error) {
	records := handover.Records.Of(s.infra)
	if s.problem != nil || len(records) == 0 {
		return phase.Done()
	}
	var result ctrl.Result
	s.unreleased = map[string]lifecycle.Outcome{}
	for _, id := range record.IDs(records) {
		if records[id].UID == "" {
			continue // A person broke it, and a person must end it.
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

// unreleasedMachines says which machines are not back, why, and what a person can do; empty when all are.
func (s *scope) unreleasedMachines() string {
	records := handover.Records.Of(s.infra)
	var told []string
	for _, id := range record.IDs(records) {
		told = append(told, records[id].Describe(s.infra, id, cmp.Or(s.unreleased[id].Message, records[id].Words)))
	}
	return strings.Join(told[:min(len(told), toldAtMost)], ". ")
}

// awaitsRecords keeps a MaasCluster that is deleted while a record stands.
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

// releasedCondition is there only when a machine was handed over.
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
