// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// reasonReservationEnded is the reason of the event about a machine that is no longer reserved.
const reasonReservationEnded = "ReservationEnded"

// endReservations removes the reservations whose successor has its machine, or did not appear in time. The sweep
// releases the machines without an owner.
func (r *Reconciler) endReservations(ctx context.Context, s *scope) (ctrl.Result, error) {
	records := reservation.Records.Of(s.infra)
	if len(records) == 0 {
		return phase.Done()
	}
	machines := &infrav1.MaasMachineList{}
	if err := r.Reader.List(ctx, machines, inNamespace(s)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the MaasMachines in namespace %s: %w", s.infra.Namespace, err)
	}
	var result ctrl.Result
	for _, id := range record.IDs(records) {
		why, left := r.ended(s, records[id], id, machines.Items)
		if why == "" {
			result = phase.Sooner(result, ctrl.Result{RequeueAfter: left})
			continue
		}
		// The patch requires the latest version, since a successor may claim the record at the same time.
		if err := upsert.PatchLatest(ctx, r.Client, s.infra, func() { reservation.Records.Remove(s.infra, id) }); err != nil {
			return ctrl.Result{}, fmt.Errorf("ending the reservation of machine %s: %w", id, err)
		}
		r.normal(s.infra, reasonReservationEnded, fmt.Sprintf("machine %s (%s) of MachineDeployment %s: %s", records[id].Hostname, id, records[id].Deployment, why))
	}
	return result, nil
}

// ended returns the reason why a reservation has ended; if it has not, it returns the remaining time.
func (r *Reconciler) ended(s *scope, record reservation.Record, id string, machines []infrav1.MaasMachine) (why string, left time.Duration) {
	var heir, former *infrav1.MaasMachine
	for i := range machines {
		switch m := &machines[i]; {
		case record.Successor != "" && string(m.UID) == record.Successor:
			heir = m
		case machine.AllocationUID(m) == record.UID:
			former = m
		}
	}
	left = record.Since.Add(reservation.SuccessorTimeout).Sub(r.Clock.Now())
	if record.Restored {
		left = sweepAge // The machine runs workloads, so only an administrator ends the reservation.
	}
	switch {
	case heir != nil && heir.Spec.SystemID != nil && *heir.Spec.SystemID == id:
		return "its successor has it", 0
	case former != nil: // The previous MaasMachine is about to allocate the machine or to be deleted.
		return "", max(left, time.Second)
	case !s.infra.DeletionTimestamp.IsZero():
		return "the cluster is deleted", 0
	case left <= 0:
		return "no successor claimed it", 0
	}
	return "", left
}
