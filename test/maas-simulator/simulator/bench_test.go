// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// hall returns a seed of n equal machines.
func hall(b *testing.B, n int) string {
	var machines []map[string]any
	for i := range n {
		machines = append(machines, map[string]any{
			"hostname": fmt.Sprintf("m%04d", i), "cpu_count": 4, "memory": 8192, "power_type": "ipmi",
			"interface_set": []any{map[string]any{
				"name": "eth0", "mac_address": fmt.Sprintf("52:54:00:01:%02x:%02x", i/256, i%256), "links": []any{map[string]any{"mode": "auto", "subnet": 1}},
			}},
			"physicalblockdevice_set": []any{map[string]any{"name": "sda", "size": 40000000000}},
		})
	}
	seed, err := json.Marshal(map[string]any{
		"subnets":        []any{map[string]any{"id": 1, "cidr": "10.0.0.0/16", "gateway_ip": "10.0.0.1"}},
		"boot_resources": []any{map[string]any{"name": "ubuntu/jammy", "type": "Synced", "architecture": "amd64/ga-22.04"}},
		"machines":       machines,
	})
	if err != nil {
		b.Fatal(err)
	}
	return string(seed)
}

func BenchmarkList1000(b *testing.B) {
	site := simtest.New(b, hall(b, 1000))
	for b.Loop() {
		if answer := site.Do("alice", "GET", "machines/"); answer.Code != 200 {
			b.Fatal(answer.Body)
		}
	}
}

func BenchmarkFilter1000(b *testing.B) {
	site := simtest.New(b, hall(b, 1000))
	for b.Loop() {
		if answer := site.Do("alice", "GET", "machines/?agent_name=nobody"); answer.Body != "[]" {
			b.Fatal(answer.Body)
		}
	}
}

// BenchmarkLife measures the deployment and release of one of a thousand machines.
func BenchmarkLife(b *testing.B) {
	site := simtest.New(b, hall(b, 1000), func(o *simulator.Options) { o.Durations = lifecycle.Durations{} })
	for b.Loop() {
		answer := site.Do("alice", "POST", "machines/?op=allocate")
		id := fmt.Sprint(answer.Object()["system_id"])
		site.Do("alice", "POST", "machines/"+id+"/?op=deploy")
		site.Settle(time.Minute)
		if answer := site.Do("alice", "POST", "machines/"+id+"/?op=release"); answer.Code != 200 {
			b.Fatal(answer.Body)
		}
		site.Settle(time.Minute)
	}
}
