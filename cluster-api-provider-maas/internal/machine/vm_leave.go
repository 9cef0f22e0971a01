// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/phase"
)

// composed reports whether the machine is a virtual machine that this provider or CAPMAAS composed for this
// MaasMachine. A release would leave it on its host indefinitely.
func (s *scope) composed(m *maas.Machine) bool {
	return lxd.IsVM(*m) && (lxd.UIDOf(m.Hostname) == s.uid() || s.machine.Spec.IsLXD() && m.SystemID == s.systemID())
}

// discard deletes a virtual machine in MAAS, which destroys it on its host, and checks whether MAAS still has it. It
// does not release it first: between the two calls another user could allocate it.
func (r *Reconciler) discard(ctx context.Context, s *scope, m *maas.Machine) error {
	err := lxd.Delete(ctx, s.identity.Client, m.SystemID)
	s.identity.Inventory.Forget(m.SystemID)
	switch {
	case maas.IsForbidden(err):
		return fmt.Errorf("%w; a virtual machine is deleted with its MaasMachine, which needs the API key of a MAAS administrator in the "+
			"Secret with the MAAS credentials, and a machine that is not locked", err)
	case err != nil:
		return err
	}
	left, err := s.identity.Inventory.Refresh(ctx, m.SystemID)
	switch {
	case maas.IsNotFound(err):
		s.observed = nil
		r.reportDiscarded(ctx, s, m)
		return nil
	case err != nil:
		return err
	}
	s.observed = left
	return nil
}

// reportDiscarded reports that a virtual machine was deleted in MAAS. A MAAS without VM hosts does not destroy it.
func (r *Reconciler) reportDiscarded(ctx context.Context, s *scope, m *maas.Machine) {
	text := fmt.Sprintf("deleted the virtual machine %s (%s) in MAAS", m.Hostname, m.SystemID)
	if _, _, err := s.identity.Inventory.VMHosts(ctx, r.Timing.Poll); maas.IsGone(err) {
		r.warn(s, "MachineDeleted", fmt.Sprintf("%s, but %s, so it may still run in LXD: delete it there", text, lxd.NoVMHosts))
		return
	}
	r.normal(s, "MachineDeleted", text)
}

// discardUnallocated deletes a virtual machine that was composed and never allocated. It waits while the outcome of a
// compose call is unknown.
func (r *Reconciler) discardUnallocated(ctx context.Context, s *scope) (ctrl.Result, error) {
	place := lxd.PlacementOf(s.machine)
	if place == nil || place.SystemID != "" && place.SystemID == s.systemID() {
		return phase.Done()
	}
	vm, err := r.findVM(ctx, s, *place)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	if vm == nil || s.handedOver(vm.SystemID) {
		return r.noVM(s, *place)
	}
	former := s.formerly(failure{SystemID: vm.SystemID})
	left := r.giveBackFailed(ctx, former)
	switch {
	case left.Action == lifecycle.Gone:
		return phase.Done()
	case r.overdue(s, left):
		return ctrl.Result{}, r.handOver(ctx, former, left)
	}
	s.findings.outcome = left
	return ctrl.Result{RequeueAfter: jitter(r.pollEvery(left))}, phase.ErrStop
}

func (r *Reconciler) noVM(s *scope, place lxd.Placement) (ctrl.Result, error) {
	left := r.Timing.Compose - r.Clock.Since(place.At)
	if place.SystemID != "" || left <= 0 {
		r.places.Forget(s.uid())
		return phase.Done()
	}
	s.findings.problem = &Problem{ReasonAllocationUncertain, fmt.Sprintf(
		"MAAS was asked to compose %s on %s and its answer was not received; waiting to see whether it turns up", place.Hostname, place.Host)}
	return ctrl.Result{RequeueAfter: min(left, jitter(r.Timing.Poll/2))}, phase.ErrStop
}
