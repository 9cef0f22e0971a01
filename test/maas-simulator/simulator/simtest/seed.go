// SPDX-License-Identifier: Apache-2.0

package simtest

// Rack is seed data with five Ready machines, "one" to "five", of increasing size. They are in three zones and two
// resource pools, on the subnet 10.9.0.0/24.
const Rack = `{
 "zones": [{"id": 1, "name": "default", "description": ""}, {"id": 2, "name": "north", "description": "cold"}, {"id": 3, "name": "south"}],
 "resourcepools": [{"id": 0, "name": "default", "description": "Default pool"}, {"id": 1, "name": "blue"}],
 "tags": [{"name": "fast"}, {"name": "gpu", "comment": "has a GPU"}],
 "domains": [{"id": 0, "name": "maas", "is_default": true}, {"id": 1, "name": "lab.example"}],
 "fabrics": [{"id": 0, "name": "fabric-0", "vlans": [
   {"id": 1, "vid": 0, "name": "untagged", "fabric_id": 0, "space": "prod"},
   {"id": 2, "vid": 30, "name": "storage", "fabric_id": 0, "dhcp_on": false}]}],
 "spaces": [{"id": 1, "name": "prod"}],
 "subnets": [
   {"id": 1, "name": "prod-net", "cidr": "10.9.0.0/24", "gateway_ip": "10.9.0.1", "dns_servers": ["10.9.0.2"], "vlan": {"id": 1}},
   {"id": 2, "name": "storage-net", "cidr": "10.8.0.0/28", "vlan": {"id": 2}}],
 "ipranges": [
   {"id": 1, "type": "reserved", "start_ip": "10.9.0.1", "end_ip": "10.9.0.9", "subnet": 1},
   {"id": 2, "type": "dynamic", "start_ip": "10.9.0.200", "end_ip": "10.9.0.250", "subnet": 1}],
 "boot_resources": [
   {"id": 1, "type": "Synced", "name": "ubuntu/jammy", "architecture": "amd64/ga-22.04", "title": "22.04 LTS"},
   {"id": 2, "type": "Synced", "name": "ubuntu/jammy", "architecture": "amd64/hwe-22.04", "title": "22.04 LTS"},
   {"id": 3, "type": "Synced", "name": "ubuntu/noble", "architecture": "amd64/ga-24.04", "title": "24.04 LTS"},
   {"id": 4, "type": "Uploaded", "name": "node", "architecture": "amd64/generic", "title": "Node", "base_image": "ubuntu/jammy", "filetype": "tgz"},
   {"id": 5, "type": "Uploaded", "name": "disk", "architecture": "amd64/generic", "title": "Disk image", "filetype": "ddgz"}],
 "machines": [
  {"system_id": "aaaaa1", "hostname": "one", "cpu_count": 2, "memory": 4096, "zone": "default", "power_type": "ipmi",
   "interface_set": [{"name": "eth0", "mac_address": "52:54:00:00:00:01", "links": [{"mode": "auto", "subnet": 1}]}],
   "physicalblockdevice_set": [{"name": "sda", "size": 40000000000, "tags": ["ssd"]}]},
  {"system_id": "aaaaa2", "hostname": "two", "cpu_count": 4, "memory": 8192, "zone": "north", "pool": "blue", "tag_names": ["fast"], "power_type": "ipmi",
   "interface_set": [{"name": "eth0", "mac_address": "52:54:00:00:00:02", "links": [{"mode": "auto", "subnet": 1}]}],
   "physicalblockdevice_set": [{"name": "sda", "size": 80000000000, "tags": ["ssd"]}]},
  {"system_id": "aaaaa3", "hostname": "three", "cpu_count": 8, "memory": 16384, "zone": "north", "pool": "blue", "tag_names": ["fast", "gpu"], "power_type": "ipmi",
   "interface_set": [
     {"name": "eth0", "mac_address": "52:54:00:00:00:03", "links": [{"mode": "auto", "subnet": 1}]},
     {"name": "eth1", "mac_address": "52:54:00:00:00:13", "tags": ["sriov"], "links": [{"mode": "auto", "subnet": 2}]}],
   "physicalblockdevice_set": [{"name": "sda", "size": 120000000000, "tags": ["ssd"]}, {"name": "sdb", "size": 1000000000000, "tags": ["rotary"]}]},
  {"system_id": "aaaaa4", "hostname": "four", "cpu_count": 4, "memory": 8192, "zone": "south", "power_type": "manual",
   "interface_set": [{"name": "eth0", "mac_address": "52:54:00:00:00:04", "links": [{"mode": "auto", "subnet": 1}]}],
   "physicalblockdevice_set": [{"name": "sda", "size": 80000000000}]},
  {"system_id": "aaaaa5", "hostname": "five", "cpu_count": 64, "memory": 262144, "zone": "south", "tag_names": ["gpu"], "power_type": "ipmi",
   "physicalblockdevice_set": [{"name": "sda", "size": 80000000000}]}
 ]}`

// WithVMHost is Rack with a VM host that can compose machines.
var WithVMHost = Rack[:len(Rack)-1] + `, "vm_hosts": [{
  "id": 7, "name": "lxd-1", "type": "lxd", "zone": "north", "pool": "blue", "parameters": {}, "tags": ["virtual"],
  "architectures": ["amd64/generic"], "capabilities": ["composable", "over_commit"],
  "total": {"cores": 16, "memory": 65536, "local_storage": 500000000000}, "used": {"cores": 2, "memory": 4096, "local_storage": 10000000000},
  "cpu_over_commit_ratio": 1.0, "memory_over_commit_ratio": 1.0, "storage_pools": []}]}`
