// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"

	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// worked lists the fields of a machine that are derived from other fields in a response.
var worked = []string{
	"fqdn", "status_name", "storage", "boot_disk", "blockdevice_set", "physicalblockdevice_set", "virtualblockdevice_set",
	"ip_addresses", "default_gateways", "workload_annotations", "resource_uri", "node_type", "node_type_name", "constraints_by_type",
}

func (l *loader) machines() {
	for _, d := range l.seed.docs("machines") {
		m := l.machine(d)
		if l.db.Machines.Get(m.SystemID) != nil {
			l.fail("two machines have the system_id %q", m.SystemID)
			return
		}
		l.db.Machines.Put(m)
	}
}

func (l *loader) machine(d Doc) *Machine {
	m := &Machine{
		ID: l.db.Next("machines"), SystemID: d.str("system_id"), Hostname: d.str("hostname"), Description: d.str("description"),
		DomainID: l.domain(d.named("domain")), ZoneID: l.zone(d.named("zone")), PoolID: l.pool(d.named("pool")),
		Architecture: d.str("architecture"), CPUCount: d.integer("cpu_count", 1), CPUSpeed: d.integer("cpu_speed", 0),
		Memory: int64(d.integer("memory", 1024)), Tags: l.knownTags(d.strs("tag_names")),
		Status:        status.Status(d.integer("status", int(status.Ready))),
		StatusMessage: d.strPtr("status_message"), StatusAction: d.strPtr("status_action"),
		ErrorDescription: d.str("error_description"),
		Owner:            d.str("owner"), Annotations: d.stringMap("owner_data"), AgentName: d.str("agent_name"), Locked: d.boolean("locked", false),
		OSystem: d.str("osystem"), Series: d.str("distro_series"), HWEKernel: d.str("hwe_kernel"), MinHWEKernel: d.strPtr("min_hwe_kernel"),
		Ephemeral: d.boolean("ephemeral_deploy", false), Netboot: d.boolean("netboot", true),
		PowerType: d.str("power_type"), PowerState: d.str("power_state"), PowerParameters: d.object("power_parameters"),
		PodID: d.intPtr("pod"), Token: l.db.NewToken(),
	}
	l.instance(m, d)
	if swap := d.intPtr("swap_size"); swap != nil {
		size := int64(*swap)
		m.SwapSize = &size
	}
	l.fillMachine(m, d)
	l.interfaces(m, d)
	l.disks(m, d)
	d.drop(worked...)
	m.Extra = d
	return m
}

// fillMachine sets defaults for fields that are missing in the seed.
func (l *loader) fillMachine(m *Machine, d Doc) {
	if m.SystemID == "" {
		m.SystemID = l.db.NewSystemID()
	}
	if m.Hostname == "" {
		m.Hostname = l.db.NewHostname()
	}
	if m.Architecture == "" {
		m.Architecture = "amd64/generic"
	}
	if m.PowerState == "" {
		m.PowerState = "off"
	}
	if _, said := d["commissioning_status"]; !said && !m.Status.In(status.New, status.Commissioning, status.FailedCommissioning) {
		d["commissioning_status"], d["commissioning_status_name"] = 2, "Passed"
	}
	passed, _ := Number(d["commissioning_status"])
	m.Commissioned = passed == 2
	m.Previous = status.New
	if m.Commissioned {
		m.Previous = status.Ready
	}
	if !m.Status.Valid() {
		l.fail("machine %s has status %d, which MAAS does not know", m.SystemID, int(m.Status))
	}
}

func (l *loader) interfaces(m *Machine, d Doc) {
	boot, hasBoot := Number(d.take("boot_interface"))
	if hasBoot {
		d["boot_interface"] = boot
	}
	for _, n := range d.docs("interface_set") {
		nic := Interface{
			ID: l.id("interfaces", n), Name: n.str("name"), Type: n.str("type"), MAC: n.str("mac_address"), Enabled: n.boolean("enabled", true),
			Parents: n.strs("parents"), Children: n.strs("children"), Tags: n.strs("tags"), Params: n.take("params"),
		}
		if nic.Name == "" {
			nic.Name = "eth0"
		}
		if nic.Type == "" {
			nic.Type = "physical"
		}
		for _, k := range n.docs("links") {
			nic.Links = append(nic.Links, l.link(k))
		}
		if vlan := n.object("vlan"); vlan != nil {
			id := l.vlan(vlan)
			nic.VLANID = &id
		} else if len(nic.Links) > 0 && nic.Links[0].SubnetID != nil {
			if s := l.db.Subnets.Get(*nic.Links[0].SubnetID); s != nil { // nil if the seed is invalid
				nic.VLANID = &s.VLANID
			}
		}
		n.drop("resource_uri", "system_id")
		nic.Extra = n
		m.Interfaces = append(m.Interfaces, nic)
	}
}

func (l *loader) link(d Doc) Link {
	link := Link{ID: l.id("links", d), Mode: d.str("mode"), IP: d.str("ip_address"), Since: l.now}
	switch subnet := d.take("subnet").(type) {
	case map[string]any:
		id := l.subnet(Doc(maps.Clone(subnet)))
		link.SubnetID = &id
	case float64:
		id := int(subnet)
		if l.db.Subnets.Get(id) == nil {
			l.fail("a link names subnet %d, which is not in subnets", id)
			return link
		}
		link.SubnetID = &id
	}
	return link
}

// devicesOf returns the disks of a machine from any of the fields that may list them.
func devicesOf(d Doc) []Doc {
	if devices := asDocs(d["blockdevice_set"]); devices != nil {
		return devices
	}
	return append(asDocs(d["physicalblockdevice_set"]), asDocs(d["virtualblockdevice_set"])...)
}

func (l *loader) disks(m *Machine, d Doc) {
	devices := devicesOf(d)
	if boot, ok := Number(d["boot_disk"]); ok {
		d["boot_disk_id"] = boot
	}
	for _, b := range devices {
		disk := Disk{ID: l.id("blockdevices", b), Name: b.str("name"), Type: b.str("type"), Size: int64(b.integer("size", 0)), Tags: b.strs("tags")}
		if m.PodID != nil {
			disk.Pool = l.storagePool(*m.PodID, b)
		}
		if disk.Type == "" {
			disk.Type = "physical"
		}
		b.drop("resource_uri", "system_id")
		disk.Extra = b
		m.Disks = append(m.Disks, disk)
	}
}
