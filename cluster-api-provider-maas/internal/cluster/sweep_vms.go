// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/maas"
)

// unallocated holds the states of a virtual machine that is not allocated. An allocated one is among the owned
// machines, or belongs to another user.
var unallocated = []maas.Status{maas.StatusNew, maas.StatusCommissioning, maas.StatusFailedCommissioning, maas.StatusReady, maas.StatusTesting,
	maas.StatusFailedTesting, maas.StatusBroken}

// deleteStrays deletes virtual machines that were composed for this cluster and never allocated, and whose MaasMachine
// was removed by force. Their names identify the cluster and the MaasMachine. No grace period is needed: a MaasMachine
// exists before its virtual machine, and the MaasMachines are listed after the virtual machines.
func (r *Reconciler) deleteStrays(ctx context.Context, s *scope) error {
	strays, err := s.composed(ctx)
	if err != nil || len(strays) == 0 {
		return err
	}
	machines := &infrav1.MaasMachineList{}
	if err := r.Reader.List(ctx, machines, inNamespace(s)); err != nil {
		return fmt.Errorf("listing the MaasMachines in namespace %s: %w", s.infra.Namespace, err)
	}
	for _, vm := range strays {
		if slices.ContainsFunc(machines.Items, func(m infrav1.MaasMachine) bool { return machine.AllocationUID(&m) == lxd.UIDOf(vm.Hostname) }) {
			continue
		}
		if err := r.deleteOrphan(ctx, s, vm); err != nil {
			s.left = &machine.Problem{Reason: reasonOrphansLeft, Message: fmt.Sprintf("%s: %v", lifecycle.Describe(&vm), err)}
		}
	}
	return nil
}

// composed lists the virtual machines that were composed for this cluster, that are not allocated, and whose release is
// not delegated.
func (s *scope) composed(ctx context.Context) ([]maas.Machine, error) {
	hosts, _, err := s.identity.Inventory.VMHosts(ctx, sweepAge)
	if maas.IsGone(err) {
		return nil, nil // MAAS 4.0 no longer has VM hosts.
	}
	var names []string
	for _, h := range lxd.Available(hosts) {
		names = append(names, h.Name)
	}
	if err != nil || len(names) == 0 {
		return nil, err
	}
	vms, err := s.identity.Client.ListMachines(ctx, maas.MachineFilter{VMHosts: names, Statuses: unallocated})
	records := handover.Records.Of(s.infra)
	return slices.DeleteFunc(vms, func(m maas.Machine) bool {
		_, known := records[m.SystemID]
		return known || !lxd.IsVM(m) || !lxd.MadeFor(m.Hostname, machine.ClusterUID(s.infra))
	}), err
}

// deleteOrphan deletes a virtual machine that no MaasMachine uses. A release would leave it on its host indefinitely.
func (r *Reconciler) deleteOrphan(ctx context.Context, s *scope, m maas.Machine) error {
	err := lxd.Delete(ctx, s.identity.Client, m.SystemID)
	s.identity.Inventory.Forget(m.SystemID)
	if err != nil {
		return err
	}
	r.warn(s.infra, "OrphanDeleted", fmt.Sprintf("deleted virtual machine %s (%s), which no MaasMachine uses", m.Hostname, m.SystemID))
	return nil
}
