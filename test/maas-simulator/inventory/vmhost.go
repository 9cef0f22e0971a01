// SPDX-License-Identifier: Apache-2.0

package inventory

import "slices"

// VMHost composes virtual machines.
type VMHost struct {
	ID   int
	Name string
	// Type is lxd or virsh.
	Type           string
	ZoneID, PoolID int
	Tags           []string
	Architectures  []string
	Capabilities   []string
	// Cores, Memory (MiB) and Storage (bytes) are what the host has; the Other
	// fields are what it uses for machines that MAAS does not list.
	Cores                           int
	Memory, Storage                 int64
	OtherCores                      int
	OtherMemory, OtherStorage       int64
	CPUOverCommit, MemoryOverCommit float64
	// HostSystemID is the machine that the VM host runs on, empty when unknown.
	HostSystemID string
	// Parameters are how MAAS reaches it: power_address, project and the like.
	Parameters   map[string]any
	StoragePools []StoragePool
	Version      string
	MacvlanMode  string
	// Away says that nothing on the host answers: its VMs have no power.
	Away bool
}

// StoragePool is where a VM host keeps disks.
type StoragePool struct {
	ID, Name, Type, Path string
	// Total and Other are in bytes; Other is used for what MAAS does not list.
	Total, Other int64
	// Default pools take the disks that name no pool.
	Default bool
}

// VM is a machine's instance on its VM host.
type VM struct {
	// ID is what a machine prints as virtualmachine_id.
	ID int
	// Instance and Project are its names on the host.
	Instance, Project string
	// PinnedCores are the host's cores that it has for itself; nil shares them.
	PinnedCores []int
	Hugepages   bool
	// Away says that the host does not answer. Lost says that the instance is gone
	// from it; MAAS lists the machine until the host is refreshed.
	Away, Lost bool
}

// Clone copies what callers change in place.
func (h *VMHost) Clone() *VMHost {
	c := *h
	c.StoragePools = slices.Clone(h.StoragePools)
	return &c
}

// Project is the host's project that MAAS keeps VMs in; empty without projects.
func (h *VMHost) Project() string {
	project, _ := h.Parameters["project"].(string)
	return project
}

// Can reports whether the host has a capability, such as composable.
func (h *VMHost) Can(capability string) bool { return slices.Contains(h.Capabilities, capability) }

// MachinesOf lists the machines that a VM host composed.
func (db *DB) MachinesOf(host int) []*Machine {
	return slices.DeleteFunc(slices.Clone(db.Machines.All()), func(m *Machine) bool { return m.PodID == nil || *m.PodID != host })
}

// Usage is what the machines of a VM host take.
type Usage struct {
	Cores           int
	Memory, Storage int64
	// Pools is what they take of each storage pool, in bytes, by the pool's id.
	Pools map[string]int64
}

// Used sums up what a VM host gave away.
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

// VMHostByName finds a VM host; nil when there is none.
func (db *DB) VMHostByName(name string) *VMHost {
	return db.VMHosts.Find(func(h *VMHost) bool { return h.Name == name })
}

// HostedBy lists the VM hosts that run on a machine.
func (db *DB) HostedBy(systemID string) []*VMHost {
	return slices.DeleteFunc(slices.Clone(db.VMHosts.All()), func(h *VMHost) bool { return h.HostSystemID != systemID })
}
