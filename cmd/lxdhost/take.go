// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"context"
	"fmt"

	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
)

// These constants identify a machine that the command has allocated. The agent_name of the allocation does so first,
// but MAAS overwrites it when it creates the VM host. A workload annotation, which is set before that, records the
// purpose of the machine, and later that the host exists.
const (
	takenAgent      = "hypershift-lxd-host"
	takenAnnotation = "hypershift-lxd-host"
	takenDone       = "ready"
)

// purpose returns what the machine is allocated for. A repeated command continues with the machine of its own purpose.
func (c *create) purpose() string {
	if c.machine != "" {
		return "machine"
	}
	return "pool." + c.pool
}

// find returns the machine for the host: one that an earlier run has allocated, or a new allocation.
func (c *create) find(ctx context.Context, m *maas.Client, report *progress.Reporter) (*maas.Machine, error) {
	if c.machine != "" {
		return c.findNamed(ctx, m, report)
	}
	taken, err := c.takenOfPool(ctx, m)
	if err != nil {
		return nil, err
	}
	if taken != nil {
		report.Printf("continuing with machine %s, which an earlier run allocated", naming(taken))
		return taken, c.annotate(ctx, m, taken)
	}
	return c.take(ctx, m, maas.AllocateRequest{
		Pool: c.pool, Zone: c.zone, Tags: c.tags, CPUCount: c.cpu, MemoryMiB: c.memory,
		// If no machine matches, MAAS would otherwise compose a VM, which cannot be a host.
		NotPodTypes: []string{"lxd", "virsh"},
	}, report)
}

// takenOfPool returns the machine that an interrupted run has allocated from the pool; nil if there is none.
func (c *create) takenOfPool(ctx context.Context, m *maas.Client) (*maas.Machine, error) {
	machines, err := m.ListMachines(ctx, maas.MachineFilter{
		Pools: []string{c.pool}, Statuses: []maas.Status{maas.StatusAllocated, maas.StatusDeploying, maas.StatusFailedDeployment, maas.StatusDeployed},
	})
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if machines[i].Annotations[takenAnnotation] == c.purpose() {
			return &machines[i], nil
		}
	}
	// An earlier run may have been interrupted before it set the annotation.
	if machines, err = m.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{takenAgent + "." + c.purpose()}}); err != nil || len(machines) == 0 {
		return nil, err
	}
	return &machines[0], nil
}

func (c *create) findNamed(ctx context.Context, m *maas.Client, report *progress.Reporter) (*maas.Machine, error) {
	machine, err := named(ctx, m, c.machine)
	if err != nil {
		return nil, err
	}
	if machine.Pod != nil {
		return nil, fmt.Errorf("machine %s is a virtual machine of VM host %s: an LXD host has to be a machine of its own", naming(machine), machine.Pod.Name)
	}
	if machine.Status == maas.StatusReady {
		return c.take(ctx, m, maas.AllocateRequest{SystemID: machine.SystemID}, report)
	}
	host, err := hostOn(ctx, m, machine.SystemID)
	if err != nil {
		return nil, err
	}
	ours := machine.Annotations[takenAnnotation] != ""
	if !ours && machine.Status == maas.StatusAllocated {
		listed, err := m.ListMachines(ctx, maas.MachineFilter{SystemIDs: []string{machine.SystemID}, AgentNames: []string{takenAgent + "." + c.purpose()}})
		if err != nil {
			return nil, err
		}
		ours = len(listed) > 0
	}
	if !ours && host == nil {
		return nil, fmt.Errorf("machine %s is %s, owner %q: an LXD host is made of a Ready machine; release it, or name another", naming(machine), machine.Status, machine.Owner)
	}
	if host == nil {
		report.Printf("continuing with machine %s, which an earlier run allocated", naming(machine))
	}
	return machine, c.annotate(ctx, m, machine)
}

// named returns a machine by system ID, else by name.
func named(ctx context.Context, m *maas.Client, name string) (*maas.Machine, error) {
	machine, err := m.GetMachine(ctx, name)
	if err == nil || !maas.IsNotFound(err) {
		return machine, err
	}
	machines, err := m.ListMachines(ctx, maas.MachineFilter{Hostnames: []string{name}})
	if err != nil {
		return nil, err
	}
	if len(machines) != 1 {
		return nil, fmt.Errorf("MAAS has no machine with the system id or name %q that this user may see", name)
	}
	return &machines[0], nil
}

func (c *create) take(ctx context.Context, m *maas.Client, request maas.AllocateRequest, report *progress.Reporter) (*maas.Machine, error) {
	request.AgentName, request.Comment = takenAgent+"."+c.purpose(), "LXD host for HyperShift"
	machine, err := m.AllocateMachine(ctx, request)
	if maas.IsConflict(err) {
		return nil, fmt.Errorf("no machine that could be the LXD host is Ready: %w", err)
	}
	if err != nil {
		return nil, err
	}
	report.Printf("machine %s is allocated: %d cores, %d MiB, zone %s, pool %s", naming(machine), machine.CPUCount, machine.MemoryMiB, machine.Zone.Name, machine.Pool.Name)
	return machine, c.annotate(ctx, m, machine)
}

// annotate records on the machine what it is allocated for.
func (c *create) annotate(ctx context.Context, m *maas.Client, machine *maas.Machine) error {
	if machine.Annotations[takenAnnotation] != "" {
		return nil
	}
	_, err := m.SetWorkloadAnnotations(ctx, machine.SystemID, map[string]string{takenAnnotation: c.purpose()})
	return err
}
