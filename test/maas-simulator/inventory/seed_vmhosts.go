package inventory

func (l *loader) vmHosts() {
	for _, d := range l.seed.docs("vm_hosts") {
		total, used := d.object("total"), d.object("used")
		h := &VMHost{
			ID: l.id("vmhosts", d), Name: d.str("name"), Type: d.str("type"), ZoneID: l.zone(d.named("zone")), PoolID: l.pool(d.named("pool")),
			Tags: d.strs("tags"), Architectures: d.strs("architectures"), Capabilities: d.strs("capabilities"),
			Cores: total.integer("cores", 0), Memory: int64(total.integer("memory", 0)), Storage: int64(total.integer("local_storage", 0)),
			OtherCores: used.integer("cores", 0), OtherMemory: int64(used.integer("memory", 0)), OtherStorage: int64(used.integer("local_storage", 0)),
			CPUOverCommit: d.float("cpu_over_commit_ratio", 1), MemoryOverCommit: d.float("memory_over_commit_ratio", 1),
			StoragePools: d.list("storage_pools"), Version: d.str("version"), MacvlanMode: d.str("default_macvlan_mode"),
			Parameters: d.object("parameters"),
		}
		if host := d.object("host"); host != nil {
			h.HostSystemID = host.str("system_id")
		}
		l.lessComposed(h)
		l.db.VMHosts.Put(h)
	}
}

// lessComposed takes what the host's listed machines use, which is worked out
// from them, off what the seed says is used.
func (l *loader) lessComposed(h *VMHost) {
	for _, m := range l.peek("machines") {
		if id, ok := Number(m["pod"]); !ok || id != h.ID {
			continue
		}
		cores, _ := Number(m["cpu_count"])
		memory, _ := Number(m["memory"])
		h.OtherCores = max(0, h.OtherCores-cores)
		h.OtherMemory = max(0, h.OtherMemory-int64(memory))
		for _, disk := range asDocs(m["physicalblockdevice_set"]) {
			size, _ := Number(disk["size"])
			h.OtherStorage = max(0, h.OtherStorage-int64(size))
		}
	}
}
