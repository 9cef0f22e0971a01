// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// Discovered returns the result of MAAS's first refresh of an LXD host without other data.
func Discovered() *inventory.VMHost {
	const storage = 1_000_000_000_000
	return &inventory.VMHost{
		Type: "lxd", ZoneID: 1, Tags: []string{"virtual"}, Architectures: []string{"amd64/generic"},
		Capabilities: []string{"composable", "dynamic_local_storage", "over_commit", "storage_pools"},
		Cores:        16, Memory: 64 << 10, Storage: storage, CPUOverCommit: 1, MemoryOverCommit: 1,
		StoragePools: []inventory.StoragePool{{ID: "default", Name: "default", Type: "dir", Path: "/var/lib/lxd", Total: storage, Default: true}},
	}
}

// AgentOfVMHost is the agent_name that MAAS sets on a machine that becomes a VM host. It replaces the name of the
// allocation.
const AgentOfVMHost = "maas-kvm-pod"

// registerVMHost adds a deployed machine as an LXD host with all of the machine's resources.
func (l *Life) registerVMHost(m *inventory.Machine) error {
	if l.DB.VMHostByName(m.Hostname) != nil {
		return errors.New("Internal error while creating VM host. (See regiond.log for details.)")
	}
	h := Discovered()
	h.ID, h.Name, h.ZoneID, h.PoolID, h.HostSystemID = l.DB.Next("vmhosts"), m.Hostname, m.ZoneID, m.PoolID, m.SystemID
	h.Tags, h.Version, h.Architectures = []string{"pod-console-logging"}, "5.21.2", []string{m.Architecture}
	h.Cores, h.Memory, h.Storage = m.CPUCount, m.Memory, 0
	for _, d := range m.Disks {
		h.Storage += d.Size
	}
	h.StoragePools[0].Total = h.Storage
	address := ""
	if ips := m.IPs(); len(ips) > 0 {
		address = ips[0]
	}
	h.Parameters = map[string]any{"power_address": address + ":8443", "project": "maas", "certificate": "", "key": ""}
	l.DB.VMHosts.Put(h)
	return nil
}

// LeaveVMHost disconnects a VM host from the network, which powers off its VMs. MAAS is not notified. It must run
// inside Update.
func (l *Life) LeaveVMHost(h *inventory.VMHost) {
	h.Away = true
	for _, m := range l.DB.MachinesOf(h.ID) {
		m = l.DB.Machines.Edit(m.SystemID)
		m.VM.Away = true
		if m.Task != nil {
			// The running operation stops, and ends with its timeout.
			m.Task.Due = time.Time{}
			continue
		}
		l.begin(m, taskLosePower)
	}
}

// ReturnVMHost reconnects a VM host. VMs that ran before start again.
func (l *Life) ReturnVMHost(h *inventory.VMHost) {
	h.Away = false
	for _, m := range l.DB.MachinesOf(h.ID) {
		m = l.DB.Machines.Edit(m.SystemID)
		m.VM.Away = false
		if m.Task == nil && m.Status == status.Deployed && m.PowerState != "off" && !m.VM.Lost {
			l.begin(m, taskPowerOn)
		}
	}
}

// LoseVM deletes a VM in LXD. MAAS is not notified.
func (l *Life) LoseVM(m *inventory.Machine) {
	m.VM.Lost = true
	l.begin(m, taskLosePower)
}

// losePowerSteps power off a VM without notifying MAAS, which finds the error at its next power query.
var losePowerSteps = []step{{
	after: func(*Life, *inventory.Machine) time.Duration { return 0 },
	work: func(ctx context.Context, l *Life, m *inventory.Machine) error {
		return l.Backend.PowerOff(ctx, m.SystemID)
	},
	done: func(_ *Life, m *inventory.Machine) error {
		if m.PowerState == "on" {
			m.PowerState = "error"
		}
		return nil
	},
}}

// switched sets the power state of a machine, and disconnects or reconnects the VM hosts on it.
func (l *Life) switched(m *inventory.Machine, state string) {
	m.PowerState = state
	for _, h := range slices.Clone(l.DB.HostedBy(m.SystemID)) {
		h = l.DB.VMHosts.Edit(h.ID)
		if state == "on" && h.Away {
			l.ReturnVMHost(h)
		} else if state == "off" && !h.Away {
			l.LeaveVMHost(h)
		}
	}
}
