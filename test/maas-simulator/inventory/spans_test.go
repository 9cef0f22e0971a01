// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

func TestHosts(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.0.0.0/24": "10.0.0.1-10.0.0.254", "10.0.0.9/24": "10.0.0.1-10.0.0.254", "10.0.0.0/30": "10.0.0.1-10.0.0.2", "10.0.0.8/31": "10.0.0.8-10.0.0.9",
		"10.0.0.8/32": "10.0.0.8-10.0.0.8", "10.0.0.0/20": "10.0.0.1-10.0.15.254", "fd00::/126": "fd00::1-fd00::3", "fd00::8/127": "fd00::8-fd00::9",
		"fd00::8/128": "fd00::8-fd00::8", "nowhere": "invalid IP-invalid IP",
	} {
		hosts := (&inventory.Subnet{CIDR: cidr}).Hosts()
		NewWithT(t).Expect(spans([]inventory.Span{hosts})).To(Equal(want), cidr)
	}
}

// purposes formats spans with their purposes.
func purposes(list []inventory.Span) string {
	var out []string
	for _, s := range list {
		out = append(out, spans([]inventory.Span{s})+" "+strings.Join(s.Purposes, "+"))
	}
	return strings.Join(out, "\n")
}

const crowded = `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.9", "dns_servers": ["10.0.0.2", "8.8.8.8", "none"]}, {"id": 2, "cidr": "10.0.1.0/24"}],
 "ipranges": [{"type": "reserved", "start_ip": "10.0.0.20", "end_ip": "10.0.0.30", "subnet": 1}, {"type": "dynamic", "start_ip": "10.0.0.3", "end_ip": "10.0.0.5", "subnet": 1},
  {"type": "reserved", "start_ip": "10.0.1.1", "end_ip": "10.0.1.9", "subnet": 2}, {"type": "reserved", "start_ip": "first", "end_ip": "10.0.0.99", "subnet": 1}],
 "ipaddresses": [{"ip": "10.0.0.25"}, {"ip": "10.0.0.254"}, {"ip": "10.0.1.200"}],
 "machines": [{"interface_set": [{"links": [{"mode": "static", "subnet": 1, "ip_address": "10.0.0.1"}, {"mode": "auto", "subnet": 2, "ip_address": "10.0.1.201"}]}]}]}`

func TestTaken(t *testing.T) {
	g := NewWithT(t)
	db := load(t, crowded)
	g.Expect(purposes(db.Taken(db.Subnets.Get(1)))).To(Equal(strings.Join([]string{
		"10.0.0.1-10.0.0.1 assigned-ip", "10.0.0.2-10.0.0.2 dns-server", "10.0.0.3-10.0.0.5 dynamic", "10.0.0.9-10.0.0.9 gateway-ip",
		"10.0.0.20-10.0.0.30 reserved", "10.0.0.25-10.0.0.25 assigned-ip", "10.0.0.254-10.0.0.254 assigned-ip",
	}, "\n")), "in order, and only what lies in the subnet")
	g.Expect(spans(db.Free(db.Subnets.Get(1)))).To(Equal("10.0.0.6-10.0.0.8 10.0.0.10-10.0.0.19 10.0.0.31-10.0.0.253"))
	g.Expect(spans(db.Free(db.Subnets.Get(2)))).To(Equal("10.0.1.10-10.0.1.199 10.0.1.202-10.0.1.254"))
}

// TestUnmanaged verifies that MAAS assigns only addresses in the reserved ranges of an unmanaged subnet.
func TestUnmanaged(t *testing.T) {
	g := NewWithT(t)
	db := load(t, strings.NewReplacer(`"cidr"`, `"managed": false, "cidr"`, `"start_ip": "10.0.0.20", "end_ip": "10.0.0.30"`, `"start_ip": "10.0.0.1", "end_ip": "10.0.0.10"`).
		Replace(crowded))
	g.Expect(spans(db.Free(db.Subnets.Get(1)))).To(Equal("10.0.0.6-10.0.0.8 10.0.0.10-10.0.0.10"), "names, gateways, dynamic ranges and machines are spared")
	g.Expect(spans(db.Free(db.Subnets.Get(2)))).To(Equal("10.0.1.1-10.0.1.9"))
	none := load(t, `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24", "managed": false}],
		"ipranges": [{"type": "dynamic", "start_ip": "10.0.0.1", "end_ip": "10.0.0.9", "subnet": 1}]}`)
	g.Expect(none.Free(none.Subnets.Get(1))).To(BeEmpty())
}

func TestMerged(t *testing.T) {
	g := NewWithT(t)
	db := load(t, crowded)
	all := func(a, b inventory.Span) bool { return true }
	taken := db.Taken(db.Subnets.Get(1))
	g.Expect(purposes(inventory.Merge(taken, all))).To(Equal(strings.Join([]string{
		"10.0.0.1-10.0.0.5 assigned-ip+dns-server+dynamic", "10.0.0.9-10.0.0.9 gateway-ip", "10.0.0.20-10.0.0.30 assigned-ip+reserved",
		"10.0.0.254-10.0.0.254 assigned-ip",
	}, "\n")))
	never := func(a, b inventory.Span) bool { return false }
	g.Expect(inventory.Merge(taken, never)).To(HaveLen(len(taken)))
	g.Expect(purposes(taken)).To(HavePrefix("10.0.0.1-10.0.0.1 assigned-ip\n"), "what was merged is as it was")
	twice := load(t, `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24"}], "ipaddresses": [{"ip": "10.0.0.7"}, {"ip": "10.0.0.8"}]}`)
	g.Expect(purposes(inventory.Merge(twice.Taken(twice.Subnets.Get(1)), all))).To(Equal("10.0.0.7-10.0.0.8 assigned-ip"), "a reason is told once")
}
