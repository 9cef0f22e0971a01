// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/upsert"
)

// inherit claims a machine that a rollout reserved for this MaasMachine, with its allocation key. If no reserved
// machine matches, any other machine will do.
func (r *Reconciler) inherit(ctx context.Context, s *scope) (ctrl.Result, error) {
	id, record, err := r.heritage(ctx, s)
	if err != nil || id == "" {
		return ctrl.Result{}, err
	}
	held, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{id}, AgentNames: []string{maas.AllocationKey(record.UID)}})
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if len(held) == 0 {
		return ctrl.Result{}, nil
	}
	if fits, result, err := r.fits(ctx, s, &held[0], record.Restored); err != nil || !fits {
		return result, err
	}
	return ctrl.Result{}, r.takeOver(ctx, s, &held[0], record)
}

// takeOver records the machine in this MaasMachine. It first writes the claim to the record, so that only one of
// several candidates succeeds.
func (r *Reconciler) takeOver(ctx context.Context, s *scope, m *maas.Machine, record reservation.Record) error {
	record.Successor = string(s.machine.UID)
	if err := r.reserve(ctx, s, m.SystemID, record); err != nil {
		return err
	}
	err := r.write(ctx, s, func() error {
		annotate(s.machine, UIDAnnotation, record.UID)
		annotate(s.machine, infrav1.OwnerAnnotation, s.user)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.record(ctx, s, m); err != nil {
		return err
	}
	r.normal(s, ReasonAllocated, fmt.Sprintf("claimed %s, which was reserved for it", lifecycle.Describe(m)))
	return upsert.Patch(ctx, r.Client, s.infra, func() { reservation.Records.Remove(s.infra, m.SystemID) })
}

// heritage returns the first machine that is reserved for a MaasMachine like this one. Its record must not be claimed
// by another MaasMachine, and its previous MaasMachine must be gone.
func (r *Reconciler) heritage(ctx context.Context, s *scope) (string, reservation.Record, error) {
	records := reservation.Records.Of(s.infra)
	if len(records) == 0 || !attemptedAt(s.machine).IsZero() || len(failuresOf(s.machine)) > 0 {
		return "", reservation.Record{}, nil
	}
	siblings, err := r.siblings(ctx, s)
	if err != nil {
		return "", reservation.Record{}, err
	}
	used, living := map[string]bool{}, map[string]bool{}
	for i := range siblings {
		used[AllocationUID(&siblings[i])], living[string(siblings[i].UID)] = true, true
	}
	deployment, set := s.machine.Labels[clusterv1.MachineDeploymentNameLabel], s.machine.Labels[clusterv1.MachineSetNameLabel]
	for _, id := range record.IDs(records) {
		record := records[id]
		free := record.Successor == "" || record.Successor == string(s.machine.UID) || record.Restored && !living[record.Successor]
		if free && !used[record.UID] && record.For(deployment, set) {
			return id, record, nil
		}
	}
	return "", reservation.Record{}, nil
}
