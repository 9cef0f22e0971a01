// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// Ratio is an over-commit ratio in the format of MAAS: 1.0, 1.25.
type Ratio float64

// String formats the ratio with at least one decimal place.
func (r Ratio) String() string {
	text := strconv.FormatFloat(float64(r), 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// MarshalJSON encodes the result of String.
func (r Ratio) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// VMHost renders a VM host.
func (p *Printer) VMHost(h *inventory.VMHost) Object {
	used := p.DB.Used(h)
	out := Object{
		"id": h.ID, "name": h.Name, "type": h.Type, "tags": list(h.Tags), "architectures": list(h.Architectures),
		"capabilities": list(h.Capabilities), "version": h.Version, "default_macvlan_mode": h.MacvlanMode,
		"total": Object{"cores": h.Cores, "memory": h.Memory, "local_storage": h.Storage},
		"used":  Object{"cores": used.Cores, "memory": used.Memory, "local_storage": used.Storage},
		"available": Object{
			"cores": h.Cores - used.Cores, "memory": h.Memory - used.Memory, "local_storage": h.Storage - used.Storage,
		},
		"cpu_over_commit_ratio": Ratio(h.CPUOverCommit), "memory_over_commit_ratio": Ratio(h.MemoryOverCommit),
		"storage_pools": storagePools(h, used), "resource_uri": uri("vm-hosts", h.ID),
		"host": Object{"system_id": orNull(h.HostSystemID), "__incomplete__": true},
	}
	if z := p.DB.Zones.Get(h.ZoneID); z != nil {
		out["zone"] = p.Zone(z)
	}
	if r := p.DB.Pools.Get(h.PoolID); r != nil {
		out["pool"] = p.Pool(r)
	}
	return out
}

func storagePools(h *inventory.VMHost, used inventory.Usage) []any {
	out := []any{}
	for _, pool := range h.StoragePools {
		out = append(out, Object{
			"id": pool.ID, "name": pool.Name, "type": pool.Type, "path": pool.Path, "default": pool.Default,
			"total": pool.Total, "used": used.Pools[pool.ID], "available": pool.Total - used.Pools[pool.ID],
		})
	}
	return out
}

// VM renders the instance of a machine on its VM host.
func (p *Printer) VM(m *inventory.Machine) Object {
	shared := m.CPUCount
	pinned := []any{}
	for _, core := range m.VM.PinnedCores {
		pinned, shared = append(pinned, core), 0
	}
	return Object{
		"id": m.VM.ID, "identifier": m.VM.Instance, "project": m.VM.Project, "pinned_cores": pinned, "unpinned_cores": shared,
		"memory": m.Memory, "hugepages_backed": m.VM.Hugepages, "machine_id": m.ID, "bmc_id": m.PodID,
		"resource_uri": Root + "virtual-machines/" + strconv.Itoa(m.VM.ID),
	}
}
