// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"encoding/json"
	"maps"
	"slices"
)

// VMHost is an LXD host of a seed. Zero values mean 16 cores, 64 GiB of memory and a storage pool "default" of 1 TB, in
// the default zone and pool.
type VMHost struct {
	Name string
	// Zone and Pool are created if they do not exist.
	Zone, Pool string
	Tags       []string
	// Memory is in MiB, DiskGB in decimal gigabytes.
	CPU, Memory, DiskGB int
	// CPUOverCommit and MemoryOverCommit are the over-commit ratios; 0 means 1.
	CPUOverCommit, MemoryOverCommit float64
	// Project is the LXD project of the VMs; empty means default.
	Project string
	// Machine is the system ID of the machine that the host runs on; empty means unknown.
	Machine string
	// StoragePools maps the names of pools to their sizes in decimal gigabytes; nil means one pool "default" of DiskGB.
	// The first name is the default pool.
	StoragePools map[string]int
}

// WithVMHosts adds LXD hosts to a seed that Seed returned.
func WithVMHosts(seed string, hosts ...VMHost) string {
	var site map[string]any
	if err := json.Unmarshal([]byte(seed), &site); err != nil {
		panic(err) // A seed is JSON.
	}
	docs := []any{}
	for i, h := range hosts {
		docs = append(docs, h.doc(i+1))
	}
	site["vm_hosts"] = docs
	out, err := json.Marshal(site)
	if err != nil {
		panic(err) // Maps of strings and numbers can always be encoded as JSON.
	}
	return string(out)
}

func (h VMHost) doc(id int) map[string]any {
	pools := h.StoragePools
	if pools == nil {
		pools = map[string]int{"default": orElse(h.DiskGB, 1000)}
	}
	var docs []any
	total := 0
	for i, name := range slices.Sorted(maps.Keys(pools)) {
		bytes := pools[name] * 1_000_000_000
		total += bytes
		docs = append(docs, map[string]any{"id": name, "name": name, "type": "zfs", "path": name, "total": bytes, "used": 0, "default": i == 0})
	}
	return map[string]any{
		"id": id, "name": h.Name, "type": "lxd", "zone": h.Zone, "pool": h.Pool, "tags": append([]string{"virtual"}, h.Tags...),
		"total":                 map[string]any{"cores": orElse(h.CPU, 16), "memory": orElse(h.Memory, 64<<10), "local_storage": total},
		"cpu_over_commit_ratio": orElse(h.CPUOverCommit, 1), "memory_over_commit_ratio": orElse(h.MemoryOverCommit, 1),
		"storage_pools": docs, "host": map[string]any{"system_id": h.Machine}, "version": "5.21.2",
		"parameters": map[string]any{"project": orElse(h.Project, "default")},
	}
}
