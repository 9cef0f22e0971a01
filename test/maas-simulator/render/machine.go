// SPDX-License-Identifier: Apache-2.0

package render

import (
	"net/netip"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// Machine renders a machine.
func (p *Printer) Machine(m *inventory.Machine) Object {
	out := over(m.Extra, p.typed(m))
	p.disks(m, out)
	p.interfaces(m, out)
	under(out, p.hardware(m))
	p.byVersion(m, out)
	delete(out, "boot_disk_id")
	return out
}

// typed renders the data that the simulator uses.
func (p *Printer) typed(m *inventory.Machine) Object {
	annotations := Object{}
	for k, v := range m.Annotations {
		annotations[k] = v
	}
	out := Object{
		"system_id": m.SystemID, "hostname": m.Hostname, "fqdn": p.DB.FQDN(m), "description": m.Description,
		"architecture": m.Architecture, "cpu_count": m.CPUCount, "cpu_speed": m.CPUSpeed, "memory": m.Memory,
		"storage": Decimal(m.StorageMB()), "swap_size": pointer(m.SwapSize),
		"status": int(m.Status), "status_name": m.Status.String(),
		"status_message": pointer(m.StatusMessage), "status_action": pointer(m.StatusAction),
		"owner": orNull(m.Owner), "owner_data": annotations, "workload_annotations": annotations, "locked": m.Locked,
		"osystem": m.OSystem, "distro_series": m.Series, "hwe_kernel": orNull(m.HWEKernel), "min_hwe_kernel": pointer(m.MinHWEKernel),
		"netboot": m.Netboot, "power_type": m.PowerType, "power_state": m.PowerState, "tag_names": list(m.Tags),
		"ip_addresses": m.IPs(), "pod": p.podOf(m), "node_type": 0, "node_type_name": "Machine",
		"resource_uri": uri("machines", m.SystemID), "default_gateways": p.gateways(m),
	}
	if m.VM != nil {
		out["virtualmachine_id"] = m.VM.ID
	}
	if z := p.DB.Zones.Get(m.ZoneID); z != nil {
		out["zone"] = p.Zone(z)
	}
	if r := p.DB.Pools.Get(m.PoolID); r != nil {
		out["pool"] = p.Pool(r)
	}
	if d := p.DB.Domains.Get(m.DomainID); d != nil {
		out["domain"] = p.Domain(d)
	}
	return out
}

func (p *Printer) podOf(m *inventory.Machine) any {
	if m.PodID == nil {
		return nil
	}
	h := p.DB.VMHosts.Get(*m.PodID)
	if h == nil {
		return nil
	}
	return Object{"id": h.ID, "name": h.Name, "resource_uri": uri("vm-hosts", h.ID)}
}

// gateways renders the default gateway of each address family. It is the gateway of the link that is set as the
// default gateway, or else of the first link whose subnet has one.
func (p *Printer) gateways(m *inventory.Machine) Object {
	v4, v6 := Object{"gateway_ip": nil, "link_id": nil}, Object{"gateway_ip": nil, "link_id": nil}
	for link := range m.Links() {
		s := p.DB.Subnets.Get(*link.SubnetID)
		if s == nil || s.Gateway == "" {
			continue
		}
		out := v4
		if isIPv6(s.Gateway) {
			out = v6
		}
		switch {
		case link.Gateway:
			out["gateway_ip"], out["link_id"] = s.Gateway, link.ID
		case out["gateway_ip"] == nil:
			out["gateway_ip"] = s.Gateway
		}
	}
	return Object{"ipv4": v4, "ipv6": v6}
}

// testKinds are the kinds of results that a machine summarizes.
var testKinds = []string{
	"testing", "cpu_test", "memory_test", "network_test", "storage_test", "interface_test", "other_test", "commissioning",
}

// hardware returns defaults for data that the seed does not have.
func (p *Printer) hardware(m *inventory.Machine) Object {
	out := Object{
		"hardware_uuid": nil, "virtualmachine_id": nil, "bios_boot_method": "uefi", "special_filesystems": []any{},
		"volume_groups": []any{}, "raids": []any{}, "cache_sets": []any{}, "bcaches": []any{},
		"numanode_set": numaNode(m), "address_ttl": nil, "disable_ipv4": false, "hardware_info": hardwareInfo(),
		"current_commissioning_result_id": nil, "current_installation_result_id": nil, "current_testing_result_id": nil,
	}
	for _, kind := range testKinds {
		out[kind+"_status"], out[kind+"_status_name"] = -1, "Unknown"
	}
	return out
}

func numaNode(m *inventory.Machine) []any {
	cores := make([]int, m.CPUCount)
	for i := range cores {
		cores[i] = i
	}
	return []any{Object{"index": 0, "memory": m.Memory, "cores": cores, "hugepages_set": []any{}}}
}

func hardwareInfo() Object {
	out := Object{"cpu_model": "Unknown"}
	for _, prefix := range []string{"vendor", "product", "family", "version", "sku", "serial"} {
		out["system_"+prefix] = "Unknown"
	}
	for _, key := range []string{"vendor", "product", "serial", "version", "firmware_vendor", "firmware_date", "firmware_version"} {
		out["mainboard_"+key] = "Unknown"
	}
	for _, key := range []string{"vendor", "type", "serial", "version"} {
		out["chassis_"+key] = "Unknown"
	}
	return out
}

// since lists the fields that a version added, with their defaults.
var since = []struct {
	minor    int
	field    string
	fallback any
}{
	{3, "last_sync", nil},
	{3, "next_sync", nil},
	{3, "sync_interval", nil},
	{4, "parent", nil},
	{4, "ephemeral_deploy", nil},
	{4, "enable_hw_sync", false},
	{5, "error_description", ""},
	{6, "enable_kernel_crash_dump", false},
	{7, "is_dpu", false},
}

// byVersion adds the fields that the version has and removes the fields that it does not have.
func (p *Printer) byVersion(m *inventory.Machine, out Object) {
	for _, s := range since {
		if p.Version.AtLeast(3, s.minor) {
			under(out, Object{s.field: s.fallback})
		} else {
			delete(out, s.field)
		}
	}
	if p.Version.AtLeast(3, 4) {
		out["ephemeral_deploy"] = m.Ephemeral
		if host := p.hostOf(m); host != "" {
			out["parent"] = Object{"system_id": host, "resource_uri": uri("machines", host), "__incomplete__": true}
		}
	}
	if p.Version.AtLeast(3, 5) {
		out["error_description"] = m.ErrorDescription
	}
}

func (p *Printer) hostOf(m *inventory.Machine) string {
	if m.PodID == nil {
		return ""
	}
	if h := p.DB.VMHosts.Get(*m.PodID); h != nil {
		return h.HostSystemID
	}
	return ""
}

// Interface renders a network interface of a machine.
func (p *Printer) Interface(m *inventory.Machine, nic *inventory.Interface) Object {
	links := []any{}
	for i := range nic.Links {
		links = append(links, p.link(&nic.Links[i]))
	}
	params := nic.Params
	if params == nil {
		params = ""
	}
	return under(over(nic.Extra, Object{
		"id": nic.ID, "name": nic.Name, "type": nic.Type, "enabled": nic.Enabled, "mac_address": nic.MAC, "vlan": p.VLAN(nic.VLANID),
		"parents": list(nic.Parents), "children": list(nic.Children), "tags": list(nic.Tags), "links": links, "params": params,
		"system_id": m.SystemID, "resource_uri": uri("nodes", m.SystemID, "interfaces", nic.ID),
	}), Object{
		"discovered": []any{}, "effective_mtu": 1500, "vendor": nil, "product": nil, "firmware_version": nil, "link_connected": true,
		"interface_speed": 1000, "link_speed": 1000, "numa_node": 0, "sriov_max_vf": 0,
	})
}

func (p *Printer) link(l *inventory.Link) Object {
	out := Object{"id": l.ID, "mode": l.Mode}
	if s := p.Subnet(l.SubnetID); s != nil {
		out["subnet"] = s
	}
	if l.IP != "" {
		out["ip_address"] = l.IP
	}
	return out
}

func (p *Printer) interfaces(m *inventory.Machine, out Object) {
	all := []any{}
	out["boot_interface"] = nil
	boot := m.BootInterface()
	for i := range m.Interfaces {
		printed := p.Interface(m, &m.Interfaces[i])
		all = append(all, printed)
		if &m.Interfaces[i] == boot {
			out["boot_interface"] = printed
		}
	}
	out["interface_set"] = all
}

// Disk renders a block device of a machine.
func (p *Printer) Disk(m *inventory.Machine, d *inventory.Disk) Object {
	return under(over(d.Extra, Object{
		"id": d.ID, "name": d.Name, "type": d.Type, "size": d.Size, "tags": list(d.Tags), "system_id": m.SystemID,
		"resource_uri": uri("nodes", m.SystemID, "blockdevices", d.ID),
	}), Object{
		"uuid": nil, "path": "/dev/disk/by-dname/" + d.Name, "model": "", "serial": "", "id_path": "/dev/" + d.Name, "block_size": 512,
		"available_size": 0, "used_size": d.Size, "used_for": "Unused", "filesystem": nil, "partition_table_type": "GPT",
		"partitions": []any{}, "firmware_version": nil, "storage_pool": orNull(d.Pool), "numa_node": 0,
	})
}

func (p *Printer) disks(m *inventory.Machine, out Object) {
	all, physical, virtual := []any{}, []any{}, []any{}
	var boot any
	bootID, chosen := inventory.Number(m.Extra["boot_disk_id"])
	for i := range m.Disks {
		d := &m.Disks[i]
		printed := p.Disk(m, d)
		all = append(all, printed)
		if d.Type == "physical" {
			physical = append(physical, printed)
		} else {
			virtual = append(virtual, printed)
		}
		if chosen && d.ID == bootID || boot == nil && d.Type == "physical" {
			boot = printed
		}
	}
	out["blockdevice_set"], out["physicalblockdevice_set"], out["virtualblockdevice_set"], out["boot_disk"] = all, physical, virtual, boot
}

// Decimal is a number that JSON shows with a fraction, even if it is zero.
type Decimal float64

// MarshalJSON encodes the number with one decimal place.
func (d Decimal) MarshalJSON() ([]byte, error) {
	return appendDecimal(nil, float64(d)), nil
}

// Prefixes returns a machine's addresses with the prefix lengths of their subnets.
func (p *Printer) Prefixes(m *inventory.Machine) []netip.Prefix {
	var out []netip.Prefix
	for _, nic := range m.Interfaces {
		for _, link := range nic.Links {
			ip, err := netip.ParseAddr(link.IP)
			if err != nil || link.SubnetID == nil {
				continue
			}
			if s := p.DB.Subnets.Get(*link.SubnetID); s != nil {
				if cidr, err := netip.ParsePrefix(s.CIDR); err == nil {
					out = append(out, netip.PrefixFrom(ip, cidr.Bits()))
				}
			}
		}
	}
	return out
}
