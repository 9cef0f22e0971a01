// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// bare is a seed with the minimum of fields.
const bare = `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24"}], "users": [{"username": "ann"}],
 "machines": [{"system_id": "abc", "hostname": "one", "cpu_count": 2, "memory": 64, "power_type": "ipmi",
  "interface_set": [{"id": 3, "name": "eth0", "mac_address": "52:54:00:00:00:01", "links": [{"id": 4, "mode": "auto", "subnet": 1}]}],
  "physicalblockdevice_set": [{"id": 5, "name": "sda", "size": 1000000000}]}],
 "rackcontrollers": [{"system_id": "rck"}], "regioncontrollers": [{"system_id": "rgn", "hostname": "region"}], "devices": [{"system_id": "dev", "hostname": "printer"}]}`

type doc = map[string]any

func statuses(out doc, kinds ...string) doc {
	for _, kind := range kinds {
		out[kind+"_status"], out[kind+"_status_name"] = -1.0, "Unknown"
	}
	return out
}

func unknownHardware() doc {
	out := doc{"cpu_model": "Unknown"}
	for _, key := range []string{
		"system_vendor", "system_product", "system_family", "system_version", "system_sku", "system_serial", "mainboard_vendor", "mainboard_product",
		"mainboard_serial", "mainboard_version", "mainboard_firmware_vendor", "mainboard_firmware_date", "mainboard_firmware_version", "chassis_vendor",
		"chassis_type", "chassis_serial", "chassis_version",
	} {
		out[key] = "Unknown"
	}
	return out
}

var (
	bareVLAN = doc{
		"id": 1.0, "vid": 0.0, "name": "untagged", "mtu": 1500.0, "dhcp_on": true, "fabric": "fabric-0", "fabric_id": 0.0, "space": "undefined",
		"external_dhcp": nil, "relay_vlan": nil, "primary_rack": nil, "secondary_rack": nil, "resource_uri": "/MAAS/api/2.0/vlans/1/",
	}
	bareSubnet = doc{
		"id": 1.0, "name": "10.0.0.0/24", "description": "", "cidr": "10.0.0.0/24", "gateway_ip": nil, "dns_servers": []any{}, "managed": true, "vlan": bareVLAN,
		"space": "undefined", "rdns_mode": 2.0, "active_discovery": false, "allow_dns": true, "allow_proxy": true, "disabled_boot_architectures": []any{},
		"resource_uri": "/MAAS/api/2.0/subnets/1/",
	}
	bareNIC = doc{
		"id": 3.0, "name": "eth0", "type": "physical", "enabled": true, "mac_address": "52:54:00:00:00:01", "vlan": bareVLAN, "parents": []any{}, "children": []any{},
		"tags": []any{}, "links": []any{doc{"id": 4.0, "mode": "auto", "subnet": bareSubnet}}, "params": "", "system_id": "abc", "discovered": []any{},
		"effective_mtu": 1500.0, "vendor": nil, "product": nil, "firmware_version": nil, "link_connected": true, "interface_speed": 1000.0, "link_speed": 1000.0,
		"numa_node": 0.0, "sriov_max_vf": 0.0, "resource_uri": "/MAAS/api/2.0/nodes/abc/interfaces/3/",
	}
	bareDisk = doc{
		"id": 5.0, "name": "sda", "type": "physical", "size": 1e9, "tags": []any{}, "system_id": "abc", "uuid": nil, "path": "/dev/disk/by-dname/sda", "model": "",
		"serial": "", "id_path": "/dev/sda", "block_size": 512.0, "available_size": 0.0, "used_size": 1e9, "used_for": "Unused", "filesystem": nil,
		"partition_table_type": "GPT", "partitions": []any{}, "firmware_version": nil, "storage_pool": nil, "numa_node": 0.0,
		"resource_uri": "/MAAS/api/2.0/nodes/abc/blockdevices/5/",
	}
	bareZone   = doc{"id": 1.0, "name": "default", "description": "", "resource_uri": "/MAAS/api/2.0/zones/default/"}
	bareDomain = doc{"id": 0.0, "name": "maas", "ttl": nil, "authoritative": true, "is_default": true, "resource_record_count": 0.0, "resource_uri": "/MAAS/api/2.0/domains/0/"}
)

// TestBareMachine verifies that a machine has every field of MAAS 3.4, even if the seed does not have it.
func TestBareMachine(t *testing.T) {
	p := printer(t, bare, "3.4")
	want := statuses(doc{
		"system_id": "abc", "hostname": "one", "fqdn": "one.maas", "description": "", "domain": bareDomain, "zone": bareZone,
		"pool":         doc{"id": 0.0, "name": "default", "description": "Default pool", "resource_uri": "/MAAS/api/2.0/resourcepool/0/"},
		"architecture": "amd64/generic", "cpu_count": 2.0, "cpu_speed": 0.0, "memory": 64.0, "storage": 1000.0, "swap_size": nil, "status": 4.0, "status_name": "Ready",
		"status_message": nil, "status_action": nil, "owner": nil, "owner_data": doc{}, "workload_annotations": doc{}, "locked": false, "osystem": "",
		"distro_series": "", "hwe_kernel": nil, "min_hwe_kernel": nil, "netboot": true, "power_type": "ipmi", "power_state": "off", "tag_names": []any{},
		"ip_addresses": []any{}, "pod": nil, "virtualmachine_id": nil, "parent": nil, "node_type": 0.0, "node_type_name": "Machine",
		"resource_uri": "/MAAS/api/2.0/machines/abc/", "default_gateways": doc{"ipv4": doc{"gateway_ip": nil, "link_id": nil}, "ipv6": doc{"gateway_ip": nil, "link_id": nil}},
		"interface_set": []any{bareNIC}, "boot_interface": bareNIC, "blockdevice_set": []any{bareDisk}, "physicalblockdevice_set": []any{bareDisk},
		"virtualblockdevice_set": []any{}, "boot_disk": bareDisk, "hardware_uuid": nil, "bios_boot_method": "uefi", "special_filesystems": []any{},
		"volume_groups": []any{}, "raids": []any{}, "cache_sets": []any{}, "bcaches": []any{}, "address_ttl": nil, "disable_ipv4": false,
		"numanode_set":  []any{doc{"index": 0.0, "memory": 64.0, "cores": []any{0.0, 1.0}, "hugepages_set": []any{}}},
		"hardware_info": unknownHardware(), "current_commissioning_result_id": nil, "current_installation_result_id": nil, "current_testing_result_id": nil,
		"last_sync": nil, "next_sync": nil, "sync_interval": nil, "ephemeral_deploy": false, "enable_hw_sync": false,
		"commissioning_status": 2.0, "commissioning_status_name": "Passed",
	}, "testing", "cpu_test", "memory_test", "network_test", "storage_test", "interface_test", "other_test")
	want["commissioning_status"], want["commissioning_status_name"] = 2.0, "Passed"
	if diff := cmp.Diff(want, through(t, p.Machine(p.DB.Machines.Get("abc")))); diff != "" {
		t.Error(diff)
	}
}

// TestBareNodes verifies that controllers and devices have the fields of nodes, and the right kind.
func TestBareNodes(t *testing.T) {
	for id, kind := range map[string]struct {
		number float64
		name   string
		path   string
		host   string
	}{
		"rck": {2, "Rack controller", "rackcontrollers/rck/", "rck"}, "rgn": {3, "Region controller", "regioncontrollers/rgn/", "region"},
		"dev": {1, "Device", "devices/dev/", "printer"},
	} {
		t.Run("When the node is a "+kind.name+", it should have the fields of that kind", func(t *testing.T) {
			p := printer(t, bare, "3.6")
			want := statuses(doc{
				"system_id": id, "hostname": kind.host, "fqdn": kind.host + ".maas", "node_type": kind.number, "node_type_name": kind.name, "description": "", "hardware_uuid": nil,
				"hardware_info": unknownHardware(), "tag_names": []any{}, "power_type": "", "power_state": "unknown", "osystem": "", "distro_series": "",
				"interface_set": []any{}, "architecture": nil, "cpu_speed": 0.0, "cpu_count": 0.0, "memory": 0.0, "swap_size": nil, "ip_addresses": []any{},
				"status_action": nil, "version": "3.6.5", "current_testing_result_id": nil, "current_commissioning_result_id": nil,
				"current_installation_result_id": nil, "zone": bareZone, "domain": bareDomain, "resource_uri": "/MAAS/api/2.0/" + kind.path,
			}, "testing", "cpu_test", "memory_test", "network_test", "storage_test", "interface_test", "other_test", "commissioning")
			if diff := cmp.Diff(want, through(t, p.Node(p.DB.Nodes.Get(id)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhatIsGone verifies that references to missing objects are rendered without an error.
func TestWhatIsGone(t *testing.T) {
	g := NewWithT(t)
	p := printer(t, bare, "3.7")
	m := p.DB.Machines.Get("abc").Clone()
	gone := 99
	m.PodID, m.ZoneID, m.PoolID, m.DomainID, m.Interfaces[0].VLANID, m.Interfaces[0].Links[0].SubnetID = &gone, gone, gone, gone, &gone, &gone
	out := through(t, p.Machine(m))
	g.Expect(out).To(And(HaveKeyWithValue("pod", BeNil()), HaveKeyWithValue("parent", BeNil()), Not(HaveKey("zone")), Not(HaveKey("pool")), Not(HaveKey("domain")),
		HaveKeyWithValue("fqdn", "one")))
	nic := out["boot_interface"].(doc)
	g.Expect(nic["vlan"]).To(BeNil())
	g.Expect(nic["links"]).To(Equal([]any{doc{"id": 4.0, "mode": "auto"}}))
	g.Expect(p.Subnet(nil)).To(BeNil())
	g.Expect(p.Prefixes(m)).To(BeEmpty())
	r := through(t, p.Range(&inventory.Range{ID: 1, SubnetID: gone, User: "nobody"}))
	g.Expect(r).To(And(HaveKeyWithValue("subnet", BeNil()), HaveKeyWithValue("user", BeNil())))
	a := through(t, p.Address(&inventory.Address{IP: "10.0.0.9", Type: 4, Owner: "ann"}))
	g.Expect(a).To(And(HaveKeyWithValue("subnet", BeNil()), HaveKeyWithValue("owner", HaveKeyWithValue("username", "ann")), HaveKeyWithValue("interface_set", BeEmpty())))
	g.Expect(through(t, p.DNSResource(&inventory.DNSResource{ID: 1, Name: "lost", DomainID: gone}))).To(HaveKeyWithValue("fqdn", "lost"))
	g.Expect(through(t, p.DNSResource(&inventory.DNSResource{ID: 1, Name: "@"}))).To(HaveKeyWithValue("fqdn", "maas"), "the domain itself")
	g.Expect(through(t, p.DNSResource(&inventory.DNSResource{ID: 1}))).To(HaveKeyWithValue("fqdn", ""))
}

func TestAllocTypes(t *testing.T) {
	for mode, want := range map[string]int{"auto": 0, "static": 1, "dhcp": 5, "link_up": 0} {
		NewWithT(t).Expect(render.AllocType(mode)).To(Equal(want), mode)
	}
}

func TestEvents(t *testing.T) {
	p := printer(t, bare, "3.4")
	at := time.Date(2026, 11, 5, 6, 7, 8, 0, time.UTC)
	want := doc{
		"id": 7.0, "level": "INFO", "created": "Thu, 05 Nov. 2026 06:07:08", "type": "Ready", "description": "d", "username": "ann", "node": "abc", "hostname": "one",
	}
	event := &inventory.Event{ID: 7, SystemID: "abc", Hostname: "one", Username: "ann", Level: "INFO", Created: at, Type: "Ready", Description: "d"}
	if diff := cmp.Diff(want, through(t, p.Event(event))); diff != "" {
		t.Error(diff)
	}
}

// TestImages verifies that an image has the files of its type, and that a list has no files.
func TestImages(t *testing.T) {
	g := NewWithT(t)
	p := printer(t, `{"boot_resources": [{"id": 1, "name": "ubuntu/jammy", "type": "Synced", "architecture": "amd64/ga-22.04"},
		{"id": 2, "name": "mine", "type": "Uploaded", "architecture": "amd64/generic"}, {"id": 3, "name": "ubuntu/noble", "type": "Synced", "architecture": "amd64/ga-24.04"}]}`, "3.4")
	set := func(id int) doc {
		return through(t, p.BootResourceItem(p.DB.BootResources.Get(id)))["sets"].(doc)[render.SetVersion].(doc)
	}
	g.Expect(set(1)["files"]).To(And(HaveLen(3), HaveKey("boot-kernel"), HaveKey("boot-initrd"), HaveKey("squashfs")))
	g.Expect(set(1)).To(And(HaveKeyWithValue("label", "stable"), HaveKeyWithValue("complete", true), HaveKeyWithValue("size", 3*float64(64<<20))))
	g.Expect(set(2)["files"]).To(And(HaveLen(1), HaveKey("root-tgz")))
	g.Expect(set(2)).To(HaveKeyWithValue("label", "uploaded"))
	kernel := func(id int) doc { return set(id)["files"].(doc)["boot-kernel"].(doc) }
	g.Expect(kernel(1)).To(And(HaveKeyWithValue("complete", true), HaveKeyWithValue("filetype", "boot-kernel"), HaveKeyWithValue("sha256", HaveLen(64))))
	g.Expect(kernel(1)["sha256"]).NotTo(Equal(kernel(3)["sha256"]), "files differ")
	g.Expect(through(t, p.BootResource(p.DB.BootResources.Get(1)))).To(And(Not(HaveKey("sets")), HaveKeyWithValue("last_deployed", BeNil())))
}

func TestRatios(t *testing.T) {
	for ratio, want := range map[render.Ratio]string{1: "1.0", 0: "0.0", 1.25: "1.25", 10: "10.0", 0.5: "0.5"} {
		NewWithT(t).Expect(ratio.String()).To(Equal(want))
	}
}
