// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
)

// ours identifies what the check has allocated: it is the agent_name of an allocation, and the name of a VM.
const ours = "hypershift-maas-check"

// longest is the longest timeout for one operation: MAAS itself fails a deployment after an hour.
const longest = 70 * time.Minute

// The size of the VM: the minimum with which an Ubuntu image deploys.
const vmMemoryMiB, vmDiskGB = 2048, 8

// taking holds the resources that the check uses.
type taking struct {
	// machine is a Ready physical machine, and host an LXD host with capacity; nil if there is none.
	machine *maas.Machine
	host    *maas.VMHost
}

func (t taking) says() []string {
	var words []string
	if t.machine != nil {
		words = append(words, fmt.Sprintf("machine %s (%s): allocate, annotate, deploy, power, release; what is on its disks is lost", t.machine.Hostname, t.machine.SystemID))
	}
	if t.host != nil {
		words = append(words, fmt.Sprintf("1 core, %d MiB and %d GB of VM host %s for VM %s: compose, commission, deploy, delete", vmMemoryMiB, vmDiskGB, t.host.Name, ours))
	}
	if len(words) == 0 {
		words = append(words, "nothing: no machine is Ready and no LXD host has room, in what MAAS_POOL and MAAS_ZONE leave")
	}
	return words
}

// plan selects machine and host without an allocation: a dry run of allocate might compose a VM.
func (c *check) plan(ctx context.Context) (taking, error) {
	var t taking
	machines, err := c.maas.ListMachines(ctx, maas.MachineFilter{Statuses: []maas.Status{maas.StatusReady}, Pools: some(c.Pool), Zones: some(c.Zone)})
	if err != nil {
		return t, err
	}
	machines = slices.DeleteFunc(machines, func(m maas.Machine) bool { return m.Pod != nil || m.Locked })
	if len(machines) > 0 {
		smallest := slices.MinFunc(machines, func(a, b maas.Machine) int { return a.CPUCount*1024 + a.MemoryMiB - b.CPUCount*1024 - b.MemoryMiB })
		t.machine = &smallest
	}
	if !c.admin {
		return t, nil
	}
	hosts, err := c.maas.ListVMHosts(ctx)
	if maas.IsGone(err) {
		return t, nil
	}
	for i := range hosts {
		if c.hasRoom(&hosts[i]) && (t.host == nil || hosts[i].Available.Memory > t.host.Available.Memory) {
			t.host = &hosts[i]
		}
	}
	return t, err
}

func (c *check) hasRoom(h *maas.VMHost) bool {
	return h.Type == "lxd" && (c.Pool == "" || h.Pool.Name == c.Pool) && (c.Zone == "" || h.Zone.Name == c.Zone) && !slices.Contains(h.Tags, maas.DrainTag) &&
		h.Available.Cores >= 1 && h.Available.Memory >= vmMemoryMiB && h.Available.LocalStorage >= vmDiskGB*1_000_000_000
}

func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// take uses the announced resources, and releases them in every case.
func (c *check) take(ctx context.Context, t taking) (err error) {
	defer func() {
		// An interrupt stops the check, but not the release.
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
		defer cancel()
		err = errors.Join(err, c.giveBackLeftovers(back))
	}()
	if t.machine != nil {
		if err := c.useMachine(ctx, t.machine); err != nil {
			return err
		}
	}
	if t.host != nil {
		if err := c.useHost(ctx, t.host); err != nil {
			return err
		}
	}
	c.report.Printf("MAAS passed all checks")
	return nil
}

func (c *check) useMachine(ctx context.Context, chosen *maas.Machine) error {
	m, err := c.maas.AllocateMachine(ctx, maas.AllocateRequest{SystemID: chosen.SystemID, AgentName: ours, Comment: ours})
	if err != nil {
		return err
	}
	if m.Pod != nil || m.SystemID != chosen.SystemID {
		return fmt.Errorf("allocating machine %s: MAAS allocated %s instead", chosen.SystemID, m.SystemID)
	}
	listed, err := c.maas.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{ours}})
	if err != nil || len(listed) != 1 {
		return fmt.Errorf("MAAS lists %d machines by the agent_name of one allocation: %w", len(listed), errors.Join(err))
	}
	if _, err := c.maas.SetWorkloadAnnotations(ctx, m.SystemID, map[string]string{ours: "yes"}); err != nil {
		return err
	}
	return c.deploy(ctx, m)
}

func (c *check) deploy(ctx context.Context, m *maas.Machine) error {
	if _, err := c.maas.DeployMachine(ctx, m.SystemID, maas.DeployRequest{DistroSeries: c.Image, UserData: []byte("#cloud-config\n{}\n"), Comment: ours}); err != nil {
		return err
	}
	if err := c.await(ctx, m, maas.StatusDeployed, maas.StatusDeploying); err != nil {
		return err
	}
	state, err := c.maas.QueryPowerState(ctx, m.SystemID)
	c.report.Printf("the power of %s is %s", m.Hostname, state)
	return err
}

func (c *check) useHost(ctx context.Context, host *maas.VMHost) error {
	made, err := c.maas.ComposeMachine(ctx, host.ID, maas.ComposeRequest{Hostname: ours, Cores: 1, MemoryMiB: vmMemoryMiB, Storage: fmt.Sprintf("root:%d", vmDiskGB)})
	if err != nil {
		return err
	}
	vm, err := c.maas.GetMachine(ctx, made.SystemID)
	if err != nil {
		return err
	}
	if vm.Pod == nil || vm.Pod.Name != host.Name {
		return fmt.Errorf("VM %s is not listed as one of VM host %s", vm.SystemID, host.Name)
	}
	if err := c.await(ctx, vm, maas.StatusReady, maas.StatusNew, maas.StatusCommissioning, maas.StatusTesting); err != nil {
		return err
	}
	return c.deploy(ctx, vm)
}

// await waits until the machine has the desired status. It fails if the machine gets a status that is neither the
// desired one nor in through.
func (c *check) await(ctx context.Context, m *maas.Machine, want maas.Status, through ...maas.Status) error {
	var failed error
	err := c.report.Wait(ctx, "machine "+m.Hostname, longest, c.interval, func(ctx context.Context) (progress.State, error) {
		now, err := c.maas.GetMachine(ctx, m.SystemID)
		if err != nil {
			return progress.State{}, err
		}
		if now.Status != want && !slices.Contains(through, now.Status) {
			failed = fmt.Errorf("machine %s is %s (%s) and not %s", now.Hostname, now.Status, now.StatusMessage, want)
		}
		return progress.State{Done: now.Status == want || failed != nil, Message: fmt.Sprintf("machine %s is %s: %s", now.Hostname, now.Status, now.StatusMessage)}, nil
	})
	return errors.Join(err, failed)
}

// giveBackLeftovers releases or deletes all machines that this check, or an earlier check that was killed, has
// allocated.
func (c *check) giveBackLeftovers(ctx context.Context) error {
	taken, err := c.maas.ListMachines(ctx, maas.MachineFilter{AgentNames: []string{ours}})
	if err != nil {
		return err
	}
	for i := range taken {
		if taken[i].Pod != nil {
			continue
		}
		if _, err := c.maas.ReleaseMachine(ctx, taken[i].SystemID, maas.ReleaseRequest{Comment: ours}); err != nil {
			return err
		}
		if err := c.await(ctx, &taken[i], maas.StatusReady, maas.StatusReleasing, maas.StatusDiskErasing); err != nil {
			return err
		}
	}
	vms, err := c.maas.ListMachines(ctx, maas.MachineFilter{Hostnames: []string{ours}})
	if err != nil {
		return err
	}
	for i := range vms {
		if vms[i].Pod == nil {
			return fmt.Errorf("machine %s has the name %s and is not a VM: rename it, the check leaves it alone", vms[i].SystemID, ours)
		}
		if err := c.maas.DeleteMachine(ctx, vms[i].SystemID); err != nil {
			return err
		}
		c.report.Printf("VM %s is deleted", vms[i].Hostname)
	}
	return nil
}
