// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"encoding/json"
	"fmt"

	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// Machine is a machine of a Seed. Zero values mean a Ready machine with 4 cores, 8 GiB of memory and a disk of 80 GB,
// in the default zone and pool.
type Machine struct {
	// ID is the system ID.
	ID, Hostname string
	// Zone and Pool are created if they do not exist.
	Zone, Pool string
	Tags       []string
	// Memory is in MiB, DiskGB in decimal gigabytes.
	CPU, Memory, DiskGB int

	// Status is the machine's status. New, the zero value, means Ready.
	Status           status.Status
	Owner, AgentName string
	Annotations      map[string]string
	// Power is on or off; empty means off.
	Power string
}

// Seed returns the seed of a region with these machines on one network, and with the images ubuntu/noble and
// custom/node-image.
func Seed(machines ...Machine) string {
	docs := []any{}
	for i, m := range machines {
		docs = append(docs, m.doc(i))
	}
	seed, err := json.Marshal(map[string]any{
		"machines": docs,
		"subnets":  []any{map[string]any{"id": 1, "name": "net", "cidr": "10.0.0.0/16", "gateway_ip": "10.0.0.1"}},
		"boot_resources": []any{
			map[string]any{"id": 1, "type": "Synced", "name": "ubuntu/noble", "architecture": "amd64/ga-24.04"},
			map[string]any{"id": 2, "type": "Uploaded", "name": "node-image", "architecture": "amd64/generic", "filetype": "tgz", "base_image": "ubuntu/jammy"},
		},
	})
	if err != nil {
		panic(err) // Maps of strings and numbers can always be encoded as JSON.
	}
	return string(seed)
}

func (m Machine) doc(index int) map[string]any {
	return map[string]any{
		"system_id": m.ID, "hostname": orElse(m.Hostname, "host-"+m.ID), "zone": m.Zone, "pool": m.Pool, "tag_names": m.Tags,
		"cpu_count": orElse(m.CPU, 4), "memory": orElse(m.Memory, 8192), "status": int(orElse(m.Status, status.Ready)),
		"owner": m.Owner, "agent_name": m.AgentName, "owner_data": m.Annotations, "power_state": m.Power, "power_type": "ipmi",
		"interface_set": []any{map[string]any{
			"name": "eth0", "mac_address": fmt.Sprintf("52:54:00:00:%02x:%02x", index/256, index%256),
			"links": []any{map[string]any{"mode": "auto", "subnet": 1}},
		}},
		"physicalblockdevice_set": []any{map[string]any{"name": "sda", "size": orElse(m.DiskGB, 80) * 1_000_000_000}},
	}
}

func orElse[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
