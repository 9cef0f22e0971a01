// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

func printer(t *testing.T, seed, version string) *render.Printer {
	t.Helper()
	db := inventory.NewDB(1)
	if err := db.Load([]byte(seed), time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)); err != nil {
		t.Fatal(err)
	}
	v, err := render.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	return &render.Printer{DB: db, Version: v}
}

// through encodes a value as JSON and decodes it, as a client would.
func through(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const machine = `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1"}, {"id": 2, "cidr": "fd00::/64", "gateway_ip": "fd00::1"}],
 "vm_hosts": [{"id": 4, "name": "kvm", "host": {"system_id": "zzz"}, "total": {"cores": 8, "memory": 100, "local_storage": 1000}}],
 "machines": [{"system_id": "abc", "hostname": "one", "cpu_count": 2, "memory": 64, "swap_size": 0, "pod": {"id": 4}, "future_field": {"a": [1]}, "cpu_test_status": 2,
  "boot_interface": {"id": 9}, "owner_data": {"k": "v"}, "error_description": "bad",
  "interface_set": [{"id": 8, "name": "eth0", "links": [{"id": 1, "mode": "auto", "subnet": 1, "ip_address": "10.0.0.5"}]},
                    {"id": 9, "name": "eth1", "vendor": "Acme", "links": [{"id": 2, "mode": "static", "subnet": 2, "ip_address": "fd00::5"}, {"id": 3, "mode": "link_up"}]}],
  "blockdevice_set": [{"id": 1, "name": "sda", "size": 1500000000, "model": "M"}, {"id": 2, "name": "md0", "type": "virtual", "size": 5}],
  "boot_disk": {"id": 1}}]}`

func TestMachine(t *testing.T) {
	g := NewWithT(t)
	p := printer(t, machine, "3.4")
	m := through(t, p.Machine(p.DB.Machines.Get("abc")))
	for field, want := range map[string]any{
		"hostname": "one", "fqdn": "one.maas", "status": 4.0, "status_name": "Ready", "owner": nil, "swap_size": 0.0, "storage": 1500.0, "cpu_test_status": 2.0,
		"memory_test_status": -1.0, "memory_test_status_name": "Unknown", "node_type_name": "Machine", "resource_uri": "/MAAS/api/2.0/machines/abc/",
		"ip_addresses": []any{"10.0.0.5", "fd00::5"}, "workload_annotations": map[string]any{"k": "v"}, "owner_data": map[string]any{"k": "v"},
		"future_field": map[string]any{"a": []any{1.0}}, "hwe_kernel": nil, "min_hwe_kernel": nil, "status_message": nil, "ephemeral_deploy": false,
	} {
		g.Expect(m).To(HaveKey(field))
		if want == nil {
			g.Expect(m[field]).To(BeNil(), field)
			continue
		}
		g.Expect(m[field]).To(Equal(want), field)
	}
	g.Expect(m["boot_interface"]).To(And(HaveKeyWithValue("name", "eth1"), HaveKeyWithValue("vendor", "Acme")))
	g.Expect(m["boot_disk"]).To(And(HaveKeyWithValue("name", "sda"), HaveKeyWithValue("model", "M")))
	g.Expect(m["physicalblockdevice_set"]).To(HaveLen(1))
	g.Expect(m["virtualblockdevice_set"]).To(HaveLen(1))
	g.Expect(m["blockdevice_set"]).To(HaveLen(2))
	g.Expect(m["default_gateways"]).To(Equal(map[string]any{
		"ipv4": map[string]any{"gateway_ip": "10.0.0.1", "link_id": nil}, "ipv6": map[string]any{"gateway_ip": "fd00::1", "link_id": nil},
	}))
	g.Expect(m["pod"]).To(HaveKeyWithValue("name", "kvm"))
	g.Expect(m["parent"]).To(HaveKeyWithValue("system_id", "zzz"))
	g.Expect(m).NotTo(HaveKey("error_description"), "3.5 brought it")
	g.Expect(m).NotTo(HaveKey("agent_name"), "MAAS never prints it")
	g.Expect(m).NotTo(HaveKey("power_parameters"))
	links := m["interface_set"].([]any)[1].(map[string]any)["links"].([]any)
	g.Expect(links[1]).To(Equal(map[string]any{"id": 3.0, "mode": "link_up"}), "a link without a subnet or an address shows neither")
	g.Expect(p.Prefixes(p.DB.Machines.Get("abc"))).To(Equal([]netip.Prefix{netip.MustParsePrefix("10.0.0.5/24"), netip.MustParsePrefix("fd00::5/64")}))
}

func TestFieldsByVersion(t *testing.T) {
	// The number of fields that each version has in addition to those of 3.2.
	more := map[string]int{"3.2": 0, "3.3": 3, "3.4": 6, "3.5": 7, "3.6": 8, "3.7": 9}
	counts := map[string]int{}
	for version := range more {
		p := printer(t, `{"machines": [{"system_id": "abc", "is_dpu": true, "error_description": "x"}]}`, version)
		counts[version] = len(through(t, p.Machine(p.DB.Machines.Get("abc"))))
	}
	for version, n := range more {
		NewWithT(t).Expect(counts[version]-counts["3.2"]).To(Equal(n), version)
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{"3.2": "3.2.10", "3.4": "3.4.10", "3.5.2": "3.5.2", "main": "4.0.0", "4.1.0": "4.1.0"} {
		g := NewWithT(t)
		v, err := render.ParseVersion(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(v.Text).To(Equal(want))
		g.Expect(v.VMHosts()).To(Equal(text[0] == '3'))
	}
	v, err := render.ParseVersion("3.5")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]bool{v.AtLeast(3, 4), v.AtLeast(3, 5), v.AtLeast(3, 6), v.AtLeast(4, 0), v.AtLeast(2, 9)}).To(Equal([]bool{true, true, false, false, true}))
}

func TestTimes(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 3, 4, 15, 6, 7, 89e6, time.FixedZone("", 3600))
	g.Expect(render.Moment(at)).To(Equal("2026-03-04T14:06:07.089"))
	g.Expect(render.EventTime(at)).To(Equal("Wed, 04 Mar. 2026 14:06:07"))
}

func TestDecimal(t *testing.T) {
	for f, want := range map[float64]string{0: "0.0", 1: "1.0", 40000: "40000.0", 1.25: "1.2", 3.5: "3.5"} {
		raw, err := json.Marshal(render.Decimal(f))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal(want))
	}
}

func TestVMHost(t *testing.T) {
	g := NewWithT(t)
	p := printer(t, machine, "3.4")
	h := through(t, p.VMHost(p.DB.VMHosts.Get(4)))
	g.Expect(h["used"]).To(Equal(map[string]any{"cores": 2.0, "memory": 64.0, "local_storage": 1500000000.0}), "a RAID takes none of its own")
	g.Expect(h["available"]).To(HaveKeyWithValue("cores", 6.0))
	g.Expect(h["host"]).To(Equal(map[string]any{"system_id": "zzz", "__incomplete__": true}))
	g.Expect(h).NotTo(HaveKey("parameters"), "how the host is reached is not printed")
}

func TestDNS(t *testing.T) {
	g := NewWithT(t)
	p := printer(t, `{"domains": [{"id": 0, "name": "maas", "is_default": true}], "subnets": [{"id": 1, "cidr": "10.0.0.0/24"}],
		"machines": [{"system_id": "abc", "hostname": "one", "owner": "ann", "interface_set": [{"id": 1, "links": [{"mode": "auto", "subnet": 1, "ip_address": "10.0.0.5"}]}]}],
		"ipaddresses": [{"ip": "10.0.0.6", "alloc_type": 4, "subnet": {"id": 1}, "owner": {"username": "ann"}, "created": "2026-01-02T03:04:05.678"}, {"ip": "10.0.0.5"}],
		"users": [{"username": "ann", "email": "ann@example.com"}],
		"dnsresources": [{"id": 3, "fqdn": "api.maas", "address_ttl": 7, "ip_addresses": [{"ip": "10.0.0.5"}, {"ip": "10.0.0.6"}, {"ip": "192.0.2.1"}],
		  "resource_records": [{"id": 1, "rrtype": "TXT", "rrdata": "hi"}]}, {"id": -1, "fqdn": "one.maas"}]}`, "3.4")
	r := through(t, p.DNSResource(p.DB.DNSResources.Get(3)))
	g.Expect(r).To(And(HaveKeyWithValue("fqdn", "api.maas"), HaveKeyWithValue("address_ttl", 7.0)))
	var kinds []string
	for _, a := range r["ip_addresses"].([]any) {
		address := a.(map[string]any)
		kinds = append(kinds, fmt.Sprint(address["ip"], " ", address["alloc_type_name"], " ", len(address["interface_set"].([]any))))
	}
	g.Expect(kinds).To(Equal([]string{"10.0.0.5 Automatic 1", "10.0.0.6 User reserved 0", "192.0.2.1 User reserved 0"}))
	g.Expect(r["resource_records"]).To(HaveLen(1))
	g.Expect(p.DB.Addresses.All()).To(HaveLen(1), "a machine holds the other one")
	g.Expect(through(t, p.Address(p.DB.Addresses.All()[0]))).To(And(HaveKeyWithValue("created", "2026-01-02T03:04:05.678"), HaveKeyWithValue("owner", HaveKeyWithValue("username", "ann"))))
	g.Expect(through(t, p.Domain(p.DB.Domains.Get(0)))).To(HaveKeyWithValue("resource_record_count", 4.0))
	implicit := through(t, p.Implicit("one.maas", "abc", 0, []string{"10.0.0.5", "fd00::1"}))
	g.Expect(implicit["resource_records"].([]any)[1]).To(And(HaveKeyWithValue("rrtype", "AAAA"), HaveKeyWithValue("rrdata", "fd00::1")))
}

func TestNodesAndImages(t *testing.T) {
	g := NewWithT(t)
	p := printer(t, `{"rackcontrollers": [{"system_id": "r1", "hostname": "rack", "extra": 1, "interface_set": [{"id": 50, "links": [{"id": 60}]}]}],
		"boot_resources": [{"id": 1, "name": "ubuntu/jammy", "type": "Synced", "architecture": "amd64/ga-22.04", "last_deployed": "2026-01-02T03:04:05.000"},
		 {"id": 2, "name": "mine", "type": "Uploaded", "architecture": "amd64/generic", "sets": {"1": {"complete": true}}}]}`, "3.4")
	rack := through(t, p.Node(p.DB.Nodes.Get("r1")))
	g.Expect(rack).To(And(HaveKeyWithValue("node_type", 2.0), HaveKeyWithValue("fqdn", "rack.maas"), HaveKeyWithValue("extra", 1.0), HaveKeyWithValue("version", "3.4.10")))
	g.Expect(p.DB.Update(func() error {
		g.Expect(p.DB.Next("interfaces")).To(Equal(51), "ids of controllers are not given again")
		g.Expect(p.DB.Next("links")).To(Equal(61))
		return nil
	})).To(Succeed())
	g.Expect(through(t, p.BootResource(p.DB.BootResources.Get(1)))).To(HaveKeyWithValue("last_deployed", "2026-01-02T03:04:05.000"))
	g.Expect(through(t, p.BootResourceItem(p.DB.BootResources.Get(1)))["sets"]).To(HaveLen(1))
	g.Expect(through(t, p.BootResourceItem(p.DB.BootResources.Get(2)))["sets"]).To(Equal(map[string]any{"1": map[string]any{"complete": true}}))
	p.Version, _ = render.ParseVersion("3.2")
	g.Expect(through(t, p.BootResource(p.DB.BootResources.Get(1)))).NotTo(HaveKey("last_deployed"))
}
