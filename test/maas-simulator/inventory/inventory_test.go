// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

func load(t *testing.T, seed string) *inventory.DB {
	t.Helper()
	db := inventory.NewDB(1)
	if err := db.Load([]byte(seed), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	return db
}

// spans formats spans as "first-last", separated by spaces.
func spans(list []inventory.Span) string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%s-%s", s.Start, s.End))
	}
	return strings.Join(out, " ")
}

func TestFree(t *testing.T) {
	tests := map[string]struct{ seed, free string }{
		"nothing is taken": {`{"subnets": [{"id": 1, "cidr": "10.0.0.0/29"}]}`, "10.0.0.1-10.0.0.6"},
		"a gateway, a name server and a machine have addresses": {
			`{"subnets": [{"id": 1, "cidr": "10.0.0.0/28", "gateway_ip": "10.0.0.1", "dns_servers": ["10.0.0.2", "192.0.2.1"]}],
			  "machines": [{"interface_set": [{"links": [{"mode": "auto", "subnet": 1, "ip_address": "10.0.0.5"}]}]}]}`,
			"10.0.0.3-10.0.0.4 10.0.0.6-10.0.0.14",
		},
		"ranges overlap": {
			`{"subnets": [{"id": 1, "cidr": "10.0.0.0/28"}], "ipranges": [
			  {"type": "reserved", "start_ip": "10.0.0.2", "end_ip": "10.0.0.9", "subnet": 1},
			  {"type": "dynamic", "start_ip": "10.0.0.4", "end_ip": "10.0.0.5", "subnet": {"id": 1}},
			  {"type": "reserved", "start_ip": "10.0.0.12", "end_ip": "10.0.0.14", "subnet": 1}]}`,
			"10.0.0.1-10.0.0.1 10.0.0.10-10.0.0.11",
		},
		"every address is in use": {
			`{"subnets": [{"id": 1, "cidr": "10.0.0.0/30"}], "ipranges": [{"type": "dynamic", "start_ip": "10.0.0.1", "end_ip": "10.0.0.2", "subnet": 1}]}`, "",
		},
		"it is a point-to-point network": {`{"subnets": [{"id": 1, "cidr": "10.0.0.0/31"}]}`, "10.0.0.0-10.0.0.1"},
		"it is IPv6":                     {`{"subnets": [{"id": 1, "cidr": "fd00::/64", "gateway_ip": "fd00::1"}]}`, "fd00::2-fd00::ffff:ffff:ffff:ffff"},
		"it is unmanaged": {
			`{"subnets": [{"id": 1, "cidr": "10.0.0.0/24", "managed": false}], "ipranges": [{"type": "reserved", "start_ip": "10.0.0.7", "end_ip": "10.0.0.9", "subnet": 1}],
			  "ipaddresses": [{"ip": "10.0.0.8"}]}`,
			"10.0.0.7-10.0.0.7 10.0.0.9-10.0.0.9",
		},
	}
	for name, test := range tests {
		t.Run("When "+name+", the free ranges should be listed", func(t *testing.T) {
			g := NewWithT(t)
			db := load(t, test.seed)
			g.Expect(spans(db.Free(db.Subnets.Get(1)))).To(Equal(test.free))
		})
	}
}

func TestMerge(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.3"}], "ipranges": [
		{"type": "reserved", "start_ip": "10.0.0.1", "end_ip": "10.0.0.4", "subnet": 1}, {"type": "dynamic", "start_ip": "10.0.0.5", "end_ip": "10.0.0.9", "subnet": 1}]}`)
	always := func(a, b inventory.Span) bool { return true }
	merged := inventory.Merge(db.Taken(db.Subnets.Get(1)), always)
	g.Expect(spans(merged)).To(Equal("10.0.0.1-10.0.0.9"))
	g.Expect(merged[0].Purposes).To(Equal([]string{"dynamic", "gateway-ip", "reserved"}))
	g.Expect(merged[0].Size()).To(Equal(9.0))
}

func TestLoad(t *testing.T) {
	t.Run("When a seed has few fields, the others should be filled in", func(t *testing.T) {
		g := NewWithT(t)
		db := load(t, `{"machines": [{"zone": "az9", "pool": {"name": "p9"}, "domain": "d9", "tag_names": ["t9"]}]}`)
		m := db.Machines.All()[0]
		g.Expect(m.SystemID).To(MatchRegexp(`^[4678abcdefghkmnpqrstwxy][34678abcdefghkmnpqrstwxy]{5}$`))
		g.Expect(m.Hostname).To(MatchRegexp(`^[a-z]+-[a-z]+$`))
		g.Expect(m).To(And(HaveField("Architecture", "amd64/generic"), HaveField("PowerState", "off"), HaveField("Commissioned", true)))
		g.Expect(db.ZoneByName("az9").ID).To(Equal(m.ZoneID))
		g.Expect(db.PoolByName("p9").ID).To(Equal(m.PoolID))
		g.Expect(db.FQDN(m)).To(Equal(m.Hostname + ".d9"))
		g.Expect(db.Tags.Get("t9")).NotTo(BeNil())
		g.Expect(db.Zones.Get(1).Name).To(Equal("default"))
		g.Expect(db.Pools.Get(0).Name).To(Equal("default"))
		g.Expect(db.Domains.Get(0).Name).To(Equal("maas"))
	})
	t.Run("When a seed is empty, there should still be a zone", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(load(t, "").Zones.All()).To(HaveLen(1))
	})
	t.Run("When lists have alternative names, they should be read too", func(t *testing.T) {
		g := NewWithT(t)
		db := load(t, `{"boot-resources": [{"name": "ubuntu/jammy"}], "pods": [{"name": "h"}], "pools": [{"name": "p"}]}`)
		g.Expect(db.BootResources.All()).To(HaveLen(1))
		g.Expect(db.VMHosts.All()).To(HaveLen(1))
		g.Expect(db.PoolByName("p")).NotTo(BeNil())
	})
	t.Run("When a VM host lists its usage, its machines should not count twice", func(t *testing.T) {
		g := NewWithT(t)
		db := load(t, `{"vm_hosts": [{"id": 3, "used": {"cores": 6, "memory": 9000, "local_storage": 50}}],
			"machines": [{"pod": {"id": 3}, "cpu_count": 4, "memory": 8000, "physicalblockdevice_set": [{"size": 40}]}]}`)
		h := db.VMHosts.Get(3)
		g.Expect([]int64{int64(h.OtherCores), h.OtherMemory, h.OtherStorage}).To(Equal([]int64{2, 1000, 10}))
		g.Expect(db.MachinesOf(3)).To(HaveLen(1))
	})
	t.Run("When a seed has IDs, new IDs should be higher", func(t *testing.T) {
		g := NewWithT(t)
		db := load(t, `{"zones": [{"id": 1, "name": "default"}, {"id": 9, "name": "z"}]}`)
		g.Expect(db.Update(func() error {
			g.Expect(db.Next("zones")).To(Equal(10))
			return nil
		})).To(Succeed())
	})
}

func TestClone(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24"}], "machines": [{"system_id": "a", "tag_names": ["t"], "owner_data": {"k": "v"},
		"interface_set": [{"links": [{"mode": "auto", "subnet": 1}]}], "physicalblockdevice_set": [{"size": 1550000}]}]}`)
	m := db.Machines.Get("a")
	c := m.Clone()
	c.Tags[0], c.Annotations["k"], c.Interfaces[0].Links[0].IP, c.Extra["x"] = "changed", "changed", "10.0.0.9", 1
	g.Expect(m).To(And(HaveField("Tags", ConsistOf("t")), HaveField("Annotations", HaveKeyWithValue("k", "v")), HaveField("Extra", Not(HaveKey("x")))))
	g.Expect(m.IPs()).To(BeEmpty())
	g.Expect(c.IPs()).To(Equal([]string{"10.0.0.9"}))
	g.Expect(m.StorageMB()).To(Equal(1.5))
	g.Expect(m.Diskless()).To(BeFalse())
}

func TestMadeUpNames(t *testing.T) {
	g := NewWithT(t)
	db := load(t, "")
	g.Expect(db.Update(func() error {
		names := map[string]bool{}
		for i := range 400 {
			m := &inventory.Machine{ID: i, SystemID: db.NewSystemID(), Hostname: db.NewHostname()}
			names[m.SystemID], names[m.Hostname] = true, true
			db.Machines.Put(m)
		}
		g.Expect(names).To(HaveLen(800))
		g.Expect(regexp.MatchString("^00:16:3e(:[0-9a-f]{2}){3}$", db.NewMAC())).To(BeTrue())
		return nil
	})).To(Succeed())
	first, second := inventory.NewDB(7), inventory.NewDB(7)
	g.Expect(first.Update(func() error { first.Restarted(); return nil })).To(Succeed())
	g.Expect(second.Update(func() error { second.Restarted(); second.Restarted(); return nil })).To(Succeed())
	g.Expect(first.NewToken()).NotTo(Equal(second.NewToken()), "a second start makes up other keys")
}

func TestSplitFQDN(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"domains": [{"id": 0, "name": "maas", "is_default": true}, {"id": 1, "name": "a.example"}, {"id": 2, "name": "b.a.example"}]}`)
	for fqdn, want := range map[string]string{"x.maas": "x@0", "x.b.a.example": "x@2", "x.y.a.example": "x.y@1", "a.example": "a.example@1", "x.nowhere": "x.nowhere@none"} {
		name, domain := db.SplitFQDN(fqdn)
		id := "none"
		if domain != nil {
			id = fmt.Sprint(domain.ID)
		}
		g.Expect(name + "@" + id).To(Equal(want))
	}
}
