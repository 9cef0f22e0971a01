// SPDX-License-Identifier: Apache-2.0

package inventory

import "slices"

// VMHost is a host on which MAAS composes virtual machines.
type VMHost struct {
	ID   int
	Name string
	// Type is lxd or virsh.
	Type           string
	ZoneID, PoolID int
	Tags           []string
	Architectures  []string
	Capabilities   []string
	// Cores, Memory (in MiB) and Storage (in bytes) are the resources of the host. The Other fields are used by machines
	// that MAAS does not list.
	Cores                           int
	Memory, Storage                 int64
	OtherCores                      int
	OtherMemory, OtherStorage       int64
	CPUOverCommit, MemoryOverCommit float64
	// HostSystemID is the system ID of the machine that the VM host runs on; empty if unknown.
	HostSystemID string
	// Parameters are the connection parameters: power_address, project and others.
	Parameters   map[string]any
	StoragePools []StoragePool
	Version      string
	MacvlanMode  string
	// Away means that the host does not answer. Its VMs have no power.
	Away bool
}

// StoragePool is a VM host's pool for disks.
type StoragePool struct {
	ID, Name, Type, Path string
	// Total and Other are in bytes. Other is the storage that MAAS does not list.
	Total, Other int64
	// Default means that the pool gets the disks that name no pool.
	Default bool
}

// VM is a machine's instance on its VM host.
type VM struct {
	// ID is the virtualmachine_id in the response of the machine.
	ID int
	// Instance and Project are the VM's names on the host.
	Instance, Project string
	// PinnedCores are the host's cores that only this VM uses; nil if it shares its cores.
	PinnedCores []int
	Hugepages   bool
	// Away means that the host does not answer. Lost means that the instance was deleted on the host; MAAS lists the
	// machine until the host is refreshed.
	Away, Lost bool
}

// Clone returns a copy. It copies the fields that callers change in place.
func (h *VMHost) Clone() *VMHost {
	c := *h
	c.StoragePools = slices.Clone(h.StoragePools)
	return &c
}

// Project returns the LXD project of the VMs; empty without projects.
func (h *VMHost) Project() string {
	project, _ := h.Parameters["project"].(string)
	return project
}

// Can reports whether the host has a capability, such as composable.
func (h *VMHost) Can(capability string) bool { return slices.Contains(h.Capabilities, capability) }

// MachinesOf returns the machines that a VM host composed.
func (db *DB) MachinesOf(host int) []*Machine {
	return slices.DeleteFunc(slices.Clone(db.Machines.All()), func(m *Machine) bool { return m.PodID == nil || *m.PodID != host })
}

// Usage contains the resources in use on a VM host.
type Usage struct {
	Cores           int
	Memory, Storage int64
	// Pools maps the IDs of storage pools to the bytes in use.
	Pools map[string]int64
}

// Used returns the sum of the resources in use on a VM host.
func (db *DB) Used(h *VMHost) Usage {
	u := Usage{Cores: h.OtherCores, Memory: h.OtherMemory, Storage: h.OtherStorage, Pools: map[string]int64{}}
	for _, p := range h.StoragePools {
		u.Pools[p.ID] = p.Other
	}
	for _, m := range db.MachinesOf(h.ID) {
		u.Cores += m.CPUCount
		u.Memory += m.Memory
		for _, d := range m.Disks {
			if d.Type != virtual {
				u.Storage += d.Size
				u.Pools[d.Pool] += d.Size
			}
		}
	}
	return u
}

// VMHostByName returns the VM host with the name; nil if there is none.
func (db *DB) VMHostByName(name string) *VMHost {
	return db.VMHosts.Find(func(h *VMHost) bool { return h.Name == name })
}

// HostedBy returns the VM hosts that run on a machine.
func (db *DB) HostedBy(systemID string) []*VMHost {
	return slices.DeleteFunc(slices.Clone(db.VMHosts.All()), func(h *VMHost) bool { return h.HostSystemID != systemID })
}
