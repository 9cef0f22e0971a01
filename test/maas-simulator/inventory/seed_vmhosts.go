// SPDX-License-Identifier: Apache-2.0

package inventory

func (l *loader) vmHosts() {
	for _, d := range l.seed.docs("vm_hosts") {
		total, used := d.object("total"), d.object("used")
		h := &VMHost{
			ID: l.id("vmhosts", d), Name: d.str("name"), Type: d.str("type"), ZoneID: l.zone(d.named("zone")), PoolID: l.pool(d.named("pool")),
			Tags: d.strs("tags"), Architectures: d.saidStrs("architectures"), Capabilities: d.saidStrs("capabilities"),
			Cores: total.integer("cores", 0), Memory: int64(total.integer("memory", 0)), Storage: int64(total.integer("local_storage", 0)),
			OtherCores: used.integer("cores", 0), OtherMemory: int64(used.integer("memory", 0)), OtherStorage: int64(used.integer("local_storage", 0)),
			CPUOverCommit: d.float("cpu_over_commit_ratio", 1), MemoryOverCommit: d.float("memory_over_commit_ratio", 1),
			StoragePools: storagePools(d.docs("storage_pools")), Version: d.str("version"), MacvlanMode: d.str("default_macvlan_mode"),
			Parameters: d.object("parameters"),
		}
		if host := d.object("host"); host != nil {
			h.HostSystemID = host.str("system_id")
		}
		completeVMHost(h)
		l.lessComposed(h)
		l.db.VMHosts.Put(h)
	}
}

// completeVMHost sets defaults for missing fields. The connection parameters are secret, so a copy of a site does not
// have them. VM hosts of a copy must be able to compose nevertheless.
func completeVMHost(h *VMHost) {
	if h.Type == "" {
		h.Type = "lxd"
	}
	if h.Architectures == nil {
		h.Architectures = []string{"amd64/generic"}
	}
	if h.Capabilities == nil {
		h.Capabilities = []string{"composable", "dynamic_local_storage", "over_commit", "storage_pools"}
	}
	if h.StoragePools == nil && h.Storage > 0 {
		h.StoragePools = []StoragePool{{
			ID: "default", Name: "default", Type: "dir", Path: "/var/lib/lxd", Total: h.Storage, Other: h.OtherStorage, Default: true,
		}}
	}
	if h.Parameters == nil {
		h.Parameters = map[string]any{}
	}
	made := map[string]any{"power_address": h.Name + ".lxd:8443", "project": "default", "certificate": "", "key": ""}
	if h.Type == "virsh" {
		made = map[string]any{"power_address": "qemu+ssh://virsh@" + h.Name + "/system", "power_pass": ""}
	}
	for key, value := range made {
		if _, said := h.Parameters[key]; !said {
			h.Parameters[key] = value
		}
	}
}

func storagePools(docs []Doc) []StoragePool {
	var out []StoragePool
	for _, d := range docs {
		p := StoragePool{
			ID: d.str("id"), Name: d.str("name"), Type: d.str("type"), Path: d.str("path"), Default: d.boolean("default", false),
			Total: int64(d.integer("total", 0)), Other: int64(d.integer("used", 0)),
		}
		if p.ID == "" {
			p.ID = p.Name
		}
		out = append(out, p)
	}
	return out
}

// lessComposed subtracts the resources of the host's listed machines from the used resources in the seed, because Used
// adds them again.
func (l *loader) lessComposed(h *VMHost) {
	for _, m := range l.peek("machines") {
		if id, ok := Number(m["pod"]); !ok || id != h.ID {
			continue
		}
		cores, _ := Number(m["cpu_count"])
		memory, _ := Number(m["memory"])
		h.OtherCores = max(0, h.OtherCores-cores)
		h.OtherMemory = max(0, h.OtherMemory-int64(memory))
		for _, disk := range devicesOf(m) {
			if disk["type"] == virtual {
				continue
			}
			size, _ := Number(disk["size"])
			h.OtherStorage = max(0, h.OtherStorage-int64(size))
			if p := h.pool(disk["storage_pool"]); p != nil {
				p.Other = max(0, p.Other-int64(size))
			}
		}
	}
}

// pool returns the storage pool that a disk names, or else the default pool; nil if the host has none.
func (h *VMHost) pool(named any) *StoragePool {
	var chosen *StoragePool
	for i := range h.StoragePools {
		p := &h.StoragePools[i]
		if p.ID == named || chosen == nil && p.Default {
			chosen = p
		}
	}
	return chosen
}

// storagePool returns the ID of the pool with the disk of a VM.
func (l *loader) storagePool(host int, disk Doc) string {
	named := disk.take("storage_pool")
	if h := l.db.VMHosts.Get(host); h != nil {
		if p := h.pool(named); p != nil {
			return p.ID
		}
	}
	id, _ := named.(string)
	return id
}

// instance creates the VM of a machine that a VM host composed.
func (l *loader) instance(m *Machine, d Doc) {
	if m.PodID == nil {
		return
	}
	m.VM = &VM{Instance: m.Hostname}
	if h := l.db.VMHosts.Get(*m.PodID); h != nil {
		m.VM.Project = h.Project()
	}
	if id, ok := Number(d.take("virtualmachine_id")); ok {
		l.db.Reserve("virtualmachines", id)
		m.VM.ID = id
		return
	}
	m.VM.ID = l.db.Next("virtualmachines")
}
