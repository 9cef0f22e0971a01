// SPDX-License-Identifier: Apache-2.0

package inventory_test

// doc is a JSON object as in a response of MAAS.
type doc = map[string]any

const root = "/MAAS/api/2.0/"

func with(base doc, more doc) doc {
	out := doc{}
	for _, from := range []doc{base, more} {
		for key, value := range from {
			out[key] = value
		}
	}
	return out
}

// The following is a site in the form of MAAS 3.7 responses, written by hand. No value is one that the simulator would
// generate.
var (
	vlan = doc{
		"id": 5, "vid": 30, "name": "storage", "fabric": "west", "fabric_id": 4, "mtu": 9000, "dhcp_on": false, "external_dhcp": "10.0.0.9",
		"relay_vlan": nil, "primary_rack": "rack01", "secondary_rack": "rack02", "space": "prod", "resource_uri": root + "vlans/5/",
	}
	subnet = doc{
		"id": 7, "name": "west-net", "description": "d", "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1", "dns_servers": []any{"10.0.0.2", "10.0.0.3"},
		"managed": true, "vlan": vlan, "space": "prod", "rdns_mode": 1, "active_discovery": true, "allow_dns": false, "allow_proxy": false,
		"disabled_boot_architectures": []any{"pxe"}, "resource_uri": root + "subnets/7/",
	}
	zone   = doc{"id": 3, "name": "az3", "description": "third", "resource_uri": root + "zones/az3/"}
	pool   = doc{"id": 2, "name": "workers", "description": "w", "resource_uri": root + "resourcepool/2/"}
	domain = doc{
		"id": 1, "name": "lab.example", "ttl": 60, "authoritative": false, "is_default": true, "resource_record_count": 3, "resource_uri": root + "domains/1/",
	}
	ann   = doc{"username": "ann", "email": "ann@example.com", "is_superuser": true, "is_local": false, "resource_uri": root + "users/ann/"}
	eth0  = nic(11, "eth0", doc{"id": 21, "mode": "static", "subnet": subnet, "ip_address": "10.0.0.5"}, doc{"id": 22, "mode": "link_up"})
	bond0 = with(nic(12, "bond0"), doc{
		"type": "bond", "enabled": false, "parents": []any{"eth0"}, "children": []any{"bond0.30"}, "params": doc{"bond_mode": "802.3ad"},
	})
	sda = disk(31, "sda", doc{"tags": []any{"ssd"}, "storage_pool": "fast", "model": "M", "serial": "S", "numa_node": 1, "uuid": "u"})
	md0 = disk(32, "md0", doc{"type": "virtual", "storage_pool": "default"})
	fm  = doc{"index": 1, "memory": 128, "cores": []any{4, 5}, "hugepages_set": []any{}}
)

func nic(id int, name string, links ...any) doc {
	return doc{
		"id": id, "name": name, "type": "physical", "enabled": true, "mac_address": "52:54:00:00:00:0a", "vlan": vlan, "parents": []any{}, "children": []any{},
		"tags": []any{"sriov"}, "links": append([]any{}, links...), "params": "", "system_id": "abc", "resource_uri": root + "nodes/abc/interfaces/" + digits(id) + "/",
		"discovered": []any{doc{"ip": "10.0.0.5"}}, "effective_mtu": 9000, "vendor": "Acme", "product": "P", "firmware_version": "1", "link_connected": false,
		"interface_speed": 25000, "link_speed": 10000, "numa_node": 1, "sriov_max_vf": 8,
	}
}

func digits(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }

func disk(id int, name string, more doc) doc {
	return with(doc{
		"id": id, "name": name, "type": "physical", "size": 500_000_000_000, "tags": []any{}, "system_id": "abc", "uuid": nil,
		"resource_uri": root + "nodes/abc/blockdevices/" + digits(id) + "/", "path": "/dev/disk/by-dname/boot", "model": "", "serial": "",
		"id_path": "/dev/disk/by-id/x", "block_size": 4096, "available_size": 1, "used_size": 2, "used_for": "GPT partitioned", "filesystem": doc{"fstype": "ext4"},
		"partition_table_type": "MBR", "partitions": []any{doc{"id": 1}}, "firmware_version": "f", "numa_node": 0,
	}, more)
}

// unknown returns the test results and hardware data of a machine that was never commissioned.
func unknown() doc {
	out := doc{}
	for _, kind := range []string{"testing", "cpu_test", "memory_test", "network_test", "storage_test", "interface_test", "other_test"} {
		out[kind+"_status"], out[kind+"_status_name"] = 3, "Failed"
	}
	return out
}

var machine = with(unknown(), doc{
	"system_id": "abc", "hostname": "one", "fqdn": "one.lab.example", "description": "first", "domain": domain, "architecture": "arm64/xgene",
	"cpu_count": 6, "cpu_speed": 2400, "memory": 16384, "storage": 500000.0, "swap_size": 1024, "zone": zone, "pool": pool, "tag_names": []any{"gpu", "fast"},
	"status": 6, "status_name": "Deployed", "status_message": "Deployed", "status_action": "", "error_description": "e", "owner": "ann",
	"owner_data": doc{"k": "v"}, "workload_annotations": doc{"k": "v"}, "locked": true, "osystem": "custom", "distro_series": "rocky9", "hwe_kernel": "ga-22.04",
	"min_hwe_kernel": "", "ephemeral_deploy": true, "netboot": false, "power_type": "lxd", "power_state": "on",
	"pod": doc{"id": 9, "name": "kvm", "resource_uri": root + "vm-hosts/9/"}, "virtualmachine_id": 17,
	"parent":        doc{"system_id": "hst", "resource_uri": root + "machines/hst/", "__incomplete__": true},
	"interface_set": []any{eth0, bond0}, "boot_interface": bond0, "blockdevice_set": []any{sda, md0}, "physicalblockdevice_set": []any{sda},
	"virtualblockdevice_set": []any{md0}, "boot_disk": sda, "ip_addresses": []any{"10.0.0.5"},
	"default_gateways": doc{"ipv4": doc{"gateway_ip": "10.0.0.1", "link_id": nil}, "ipv6": doc{"gateway_ip": nil, "link_id": nil}},
	"node_type":        0, "node_type_name": "Machine", "resource_uri": root + "machines/abc/", "hardware_uuid": "h", "bios_boot_method": "pxe",
	"special_filesystems": []any{doc{"fstype": "tmpfs"}}, "volume_groups": []any{1}, "raids": []any{2}, "cache_sets": []any{3}, "bcaches": []any{4},
	"numanode_set": []any{fm}, "address_ttl": 5, "disable_ipv4": true, "hardware_info": doc{"cpu_model": "C"}, "commissioning_status": 2,
	"commissioning_status_name": "Passed", "current_commissioning_result_id": 1, "current_installation_result_id": 2, "current_testing_result_id": 3,
	"last_sync": "2026-01-01T00:00:00.000", "next_sync": nil, "sync_interval": 900, "enable_hw_sync": true, "enable_kernel_crash_dump": true, "is_dpu": true,
})

// site maps the name of each list to its objects.
var site = map[string][]doc{
	"users":         {ann},
	"zones":         {{"id": 1, "name": "default", "description": "", "resource_uri": root + "zones/default/"}, zone},
	"resourcepools": {{"id": 0, "name": "default", "description": "all", "resource_uri": root + "resourcepool/0/"}, pool},
	"tags": {
		{"name": "gpu", "definition": "//node", "comment": "c", "kernel_opts": "quiet", "resource_uri": root + "tags/gpu/"},
		{"name": "fast", "definition": "", "comment": "", "kernel_opts": "", "resource_uri": root + "tags/fast/"},
	},
	"domains": {domain},
	"spaces": {
		{"id": 6, "name": "prod", "description": "p", "vlans": []any{vlan}, "subnets": []any{subnet}, "resource_uri": root + "spaces/6/"},
		{"id": -1, "name": "undefined", "description": "Backward compatibility object to ensure objects not associated with a space can be found.",
			"vlans": []any{}, "subnets": []any{}, "resource_uri": root + "spaces/undefined/"},
	},
	"fabrics": {{"id": 4, "name": "west", "class_type": "10g", "vlans": []any{vlan}, "resource_uri": root + "fabrics/4/"}},
	"subnets": {subnet},
	"ipranges": {{"id": 8, "type": "reserved", "start_ip": "10.0.0.10", "end_ip": "10.0.0.20", "subnet": subnet, "user": ann, "comment": "c",
		"resource_uri": root + "ipranges/8/"}},
	"ipaddresses": {{"ip": "10.0.0.30", "alloc_type": 1, "alloc_type_name": "Static", "created": "2026-01-02T03:04:05.678", "subnet": subnet, "owner": ann,
		"interface_set": []any{doc{"id": 99}}, "resource_uri": root + "ipaddresses/"}},
	"boot_resources": {
		{"id": 2, "type": "Uploaded", "name": "rocky9", "architecture": "amd64/generic", "subarches": "generic", "title": "Rocky", "base_image": "ubuntu/jammy",
			"last_deployed": "2026-01-02T03:04:05.678", "platform": "generic", "resource_uri": root + "boot-resources/2/"},
	},
	"vm_hosts": {{
		"id": 9, "name": "kvm", "type": "virsh", "tags": []any{"virtual"}, "architectures": []any{"arm64/generic"}, "capabilities": []any{"composable"},
		"total": doc{"cores": 32, "memory": 65536, "local_storage": 2_000_000_000_000}, "used": doc{"cores": 8, "memory": 20000, "local_storage": 1_200_000_000_000},
		"available": doc{"cores": 24, "memory": 45536, "local_storage": 800_000_000_000}, "zone": zone, "pool": pool, "cpu_over_commit_ratio": 2.5,
		"memory_over_commit_ratio": 3.0, "storage_pools": []any{
			doc{"id": "fast", "name": "quick", "type": "zfs", "path": "tank", "default": false, "total": 900_000_000_000, "used": 600_000_000_000, "available": 300_000_000_000},
			doc{"id": "default", "name": "slow", "type": "dir", "path": "/srv", "default": true, "total": 1_100_000_000_000, "used": 600_000_000_000,
				"available": 500_000_000_000},
		},
		"host": doc{"system_id": "hst", "__incomplete__": true}, "default_macvlan_mode": "bridge", "version": "5.0", "resource_uri": root + "vm-hosts/9/",
	}},
	"dnsresources": {{
		"id": 13, "fqdn": "api.lab.example", "address_ttl": 15, "ip_addresses": []any{}, "resource_records": []any{
			doc{"id": 14, "fqdn": "api.lab.example", "ttl": 16, "rrtype": "TXT", "rrdata": "hi", "resource_uri": root + "dnsresourcerecords/14/"},
			doc{"id": 15, "fqdn": "api.lab.example", "ttl": nil, "rrtype": "MX", "rrdata": "10 m", "resource_uri": root + "dnsresourcerecords/15/"},
		}, "resource_uri": root + "dnsresources/13/",
	}},
	"machines": {machine},
}
