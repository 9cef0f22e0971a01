package render

import (
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

func appendDecimal(out []byte, f float64) []byte { return strconv.AppendFloat(out, f, 'f', 1, 64) }

// Node prints a controller or device: what the seed said over what all have.
func (p *Printer) Node(n *inventory.Node) Object {
	names := map[string]struct {
		kind int
		name string
	}{"devices": {1, "Device"}, "rackcontrollers": {2, "Rack controller"}, "regioncontrollers": {3, "Region controller"}}
	kind := names[n.Kind]
	out := Object{
		"system_id": n.SystemID, "hostname": n.SystemID, "node_type": kind.kind, "node_type_name": kind.name, "description": "",
		"hardware_uuid": nil, "hardware_info": hardwareInfo(), "tag_names": []any{}, "power_type": "", "power_state": "unknown",
		"osystem": "", "distro_series": "", "interface_set": []any{}, "architecture": nil, "cpu_speed": 0, "cpu_count": 0, "memory": 0,
		"swap_size": nil, "ip_addresses": []any{}, "status_action": nil, "version": p.Version.Text,
		"current_testing_result_id": nil, "current_commissioning_result_id": nil, "current_installation_result_id": nil,
		"resource_uri": uri(n.Kind, n.SystemID),
	}
	for _, kind := range testKinds {
		out[kind+"_status"], out[kind+"_status_name"] = -1, "Unknown"
	}
	if z := p.DB.Zones.Get(1); z != nil {
		out["zone"] = p.Zone(z)
	}
	if d := p.DB.Domains.Find(func(d *inventory.Domain) bool { return d.Default }); d != nil {
		out["domain"] = p.Domain(d)
		hostname, _ := n.Doc["hostname"].(string)
		out["fqdn"] = hostname + "." + d.Name
	}
	return over(out, n.Doc)
}

// Usage is what a VM host's machines take.
type Usage struct {
	Cores           int
	Memory, Storage int64
}

// Used sums up what a VM host gave away.
func (p *Printer) Used(h *inventory.VMHost) Usage {
	u := Usage{Cores: h.OtherCores, Memory: h.OtherMemory, Storage: h.OtherStorage}
	for _, m := range p.DB.MachinesOf(h.ID) {
		u.Cores += m.CPUCount
		u.Memory += m.Memory
		for _, d := range m.Disks {
			u.Storage += d.Size
		}
	}
	return u
}

// VMHost prints a VM host.
func (p *Printer) VMHost(h *inventory.VMHost) Object {
	used := p.Used(h)
	out := Object{
		"id": h.ID, "name": h.Name, "type": h.Type, "tags": list(h.Tags), "architectures": list(h.Architectures),
		"capabilities": list(h.Capabilities), "version": h.Version, "default_macvlan_mode": h.MacvlanMode,
		"total": Object{"cores": h.Cores, "memory": h.Memory, "local_storage": h.Storage},
		"used":  Object{"cores": used.Cores, "memory": used.Memory, "local_storage": used.Storage},
		"available": Object{
			"cores": h.Cores - used.Cores, "memory": h.Memory - used.Memory, "local_storage": h.Storage - used.Storage,
		},
		"cpu_over_commit_ratio": Decimal(h.CPUOverCommit), "memory_over_commit_ratio": Decimal(h.MemoryOverCommit),
		"storage_pools": list(h.StoragePools), "resource_uri": uri("vm-hosts", h.ID),
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
