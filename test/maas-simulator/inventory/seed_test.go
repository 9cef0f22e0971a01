// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestRefusedSeeds verifies that an invalid seed is rejected as a whole, with an error message that names the mistake.
func TestRefusedSeeds(t *testing.T) {
	for seed, says := range map[string]string{
		`[]`:                       "it must be one JSON object",
		`{"machines": [`:           "it must be one JSON object",
		`{"subnets": [{"id": 3}]}`: "the cidr of subnet 3",
		`{"subnets": [{"id": 3, "cidr": "10.0.0.0"}]}`:                                            "the cidr of subnet 3",
		`{"machines": [{"system_id": "a"}, {"system_id": "a"}]}`:                                  `two machines have the system_id "a"`,
		`{"machines": [{"system_id": "a", "status": 23}]}`:                                        "machine a has status 23, which MAAS does not know",
		`{"machines": [{"system_id": "a", "status": -1}]}`:                                        "machine a has status -1",
		`{"machines": [{"interface_set": [{"links": [{"mode": "auto", "subnet": 9}]}]}]}`:         "a link names subnet 9, which is not in subnets",
		`{"machines": [{"interface_set": [{"links": [{"mode": "auto", "subnet": {"id": 9}}]}]}]}`: "the cidr of subnet 9",
		`{"rackcontrollers": [{"hostname": "r"}]}`:                                                "an entry of rackcontrollers has no system_id",
		`{"devices": [{"hostname": "r"}]}`:                                                        "an entry of devices has no system_id",
		`{"dnsresources": [{"fqdn": "a.nowhere"}]}`:                                               `the domain of dnsresource "a.nowhere" is not in domains`,
	} {
		t.Run("When the seed is "+seed+", the error should say what is wrong", func(t *testing.T) {
			g := NewWithT(t)
			db := inventory.NewDB(1)
			g.Expect(db.Load([]byte(seed), time.Unix(0, 0))).To(MatchError(And(HavePrefix("reading the seed: "), ContainSubstring(says))))
			g.Expect(db.Machines.All()).To(BeEmpty())
			g.Expect(db.Zones.All()).To(BeEmpty())
		})
	}
}

// TestMadeUp verifies the defaults of values that the seed does not have.
func TestMadeUp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := inventory.NewDB(1)
	if err := db.Load([]byte(`{"subnets": [{"id": 4, "cidr": "10.0.0.0/24"}, {"id": 5, "cidr": "10.1.0.0/24", "vlan": {"id": 7, "fabric_id": 3, "space": "s"}}],
		"fabrics": [{"name": "f"}], "vlans": [{"id": 6}], "vm_hosts": [{"name": "h", "total": {"local_storage": 100}, "used": {"local_storage": 40}},
		  {"name": "v", "type": "virsh", "parameters": {"power_address": "x"}, "architectures": [], "capabilities": []}],
		"ipranges": [{"start_ip": "10.0.0.5", "end_ip": "10.0.0.6"}], "ipaddresses": [{"ip": "10.0.0.9"}, {"ip": ""}, {"ip": "10.0.0.8"}],
		"machines": [{"system_id": "a", "hostname": "one", "interface_set": [{"mac_address": "m", "links": [{"mode": "auto", "subnet": 5, "ip_address": "10.0.0.8"}]}],
		  "physicalblockdevice_set": [{"size": 5}]}]}`), now); err != nil {
		t.Fatal(err)
	}
	t.Run("When a machine has no other fields, it should be small and off", func(t *testing.T) {
		g := NewWithT(t)
		m := db.Machines.Get("a")
		g.Expect(m).To(And(HaveField("CPUCount", 1), HaveField("CPUSpeed", 0), HaveField("Memory", int64(1024)), HaveField("Status", status.Ready),
			HaveField("Locked", false), HaveField("Ephemeral", false), HaveField("Netboot", true), HaveField("ZoneID", 1), HaveField("PoolID", 0),
			HaveField("SwapSize", BeNil()), HaveField("MinHWEKernel", BeNil()), HaveField("StatusMessage", BeNil()), HaveField("VM", BeNil()),
			HaveField("Previous", status.Ready)))
		g.Expect(m.Interfaces[0]).To(And(HaveField("Name", "eth0"), HaveField("Type", "physical"), HaveField("Enabled", true)))
		g.Expect(*m.Interfaces[0].VLANID).To(Equal(7), "an interface is on the VLAN of its subnet")
		g.Expect(m.Interfaces[0].Links[0].Since).To(Equal(now))
		g.Expect(m.Disks[0]).To(And(HaveField("Type", "physical"), HaveField("Size", int64(5)), HaveField("Pool", "")))
		g.Expect(m.Token).To(And(HaveField("Consumer", HaveLen(18)), HaveField("Key", HaveLen(18)), HaveField("Secret", HaveLen(32))))
	})
	t.Run("When a network has no other fields, it should be managed, untagged and have DHCP", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(db.Subnets.Get(4)).To(And(HaveField("Name", "10.0.0.0/24"), HaveField("Managed", true), HaveField("VLANID", 6), HaveField("Gateway", "")))
		g.Expect(db.VLANs.Get(6)).To(And(HaveField("Name", "untagged"), HaveField("VID", 0), HaveField("MTU", 1500), HaveField("DHCPOn", true),
			HaveField("SpaceID", BeNil())))
		g.Expect(db.SpaceOf(db.VLANs.Get(6))).To(Equal("undefined"))
		g.Expect(db.SpaceOf(db.VLANs.Get(7))).To(Equal("s"))
		g.Expect(db.SpaceOf(nil)).To(Equal("undefined"))
		g.Expect(db.Fabrics.Get(3)).NotTo(BeNil(), "a VLAN's fabric is made")
		g.Expect(db.Ranges.All()).To(HaveExactElements(HaveField("SubnetID", 1)))
		g.Expect(db.Addresses.All()).To(HaveExactElements(And(HaveField("IP", "10.0.0.9"), HaveField("Type", 4), HaveField("Owner", ""))),
			"a machine holds the other one")
	})
	t.Run("When a VM host has no other fields, it should be able to compose with its free resources", func(t *testing.T) {
		g := NewWithT(t)
		h := db.VMHostByName("h")
		g.Expect(h).To(And(HaveField("Type", "lxd"), HaveField("Architectures", ConsistOf("amd64/generic")), HaveField("CPUOverCommit", 1.0),
			HaveField("MemoryOverCommit", 1.0)))
		for _, capability := range []string{"composable", "over_commit", "storage_pools", "dynamic_local_storage"} {
			g.Expect(h.Can(capability)).To(BeTrue(), capability)
		}
		g.Expect(h.StoragePools).To(HaveExactElements(And(HaveField("ID", "default"), HaveField("Default", true), HaveField("Total", int64(100)),
			HaveField("Other", int64(40)))))
		g.Expect(h.Parameters).To(And(HaveKeyWithValue("power_address", "h.lxd:8443"), HaveKeyWithValue("project", "default"), HaveLen(4)))
		g.Expect(h.Project()).To(Equal("default"))
		v := db.VMHostByName("v")
		g.Expect(v).To(And(HaveField("Architectures", BeEmpty()), HaveField("Capabilities", BeEmpty()), HaveField("StoragePools", BeEmpty())),
			"what is said to be empty is empty")
		g.Expect(v.Parameters).To(Equal(map[string]any{"power_address": "x", "power_pass": ""}), "what is said of the way to it stays")
		g.Expect(v.Project()).To(BeEmpty())
	})
}

func TestCommissioned(t *testing.T) {
	for seed, want := range map[string]bool{
		`{}`: true, `{"status": 0}`: false, `{"status": 1}`: false, `{"status": 2}`: false, `{"status": 6}`: true, `{"status": 21}`: true,
		`{"status": 0, "commissioning_status": 2}`: true, `{"status": 4, "commissioning_status": 3}`: false,
	} {
		t.Run("When a machine is "+seed+", its commissioning status should decide whether it is commissioned", func(t *testing.T) {
			g := NewWithT(t)
			m := load(t, `{"machines": [`+seed+`]}`).Machines.All()[0]
			g.Expect(m.Commissioned).To(Equal(want))
			if seed == `{}` {
				g.Expect(m.Extra).To(And(HaveKeyWithValue("commissioning_status", 2), HaveKeyWithValue("commissioning_status_name", "Passed")))
			}
			g.Expect(m.Previous).To(Equal(map[bool]status.Status{true: status.Ready, false: status.New}[want]))
		})
	}
}

// TestNumbersAreGivenOnce verifies that IDs in a seed are kept, and that later objects get new ones. That includes IDs
// that only one list contains.
func TestNumbersAreGivenOnce(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"resourcepools": [{"id": 5, "name": "p"}], "domains": [{"id": 6, "name": "d"}], "spaces": [{"id": 7, "name": "s"}, {"id": -1, "name": "undefined"}],
		"fabrics": [{"id": 8, "name": "f", "vlans": [{"id": 9, "fabric_id": 8}]}], "subnets": [{"id": 10, "cidr": "10.0.0.0/24"}],
		"ipranges": [{"id": 11, "type": "reserved", "start_ip": "10.0.0.1", "end_ip": "10.0.0.2"}], "boot_resources": [{"id": 12, "name": "ubuntu/noble"}],
		"vm_hosts": [{"id": 13, "name": "h"}], "dnsresources": [{"id": 14, "fqdn": "a.d", "resource_records": [{"id": 15, "rrtype": "TXT"}]}],
		"machines": [{"pod": {"id": 13}, "virtualmachine_id": 16, "interface_set": [{"id": 17, "links": [{"id": 18}]}], "blockdevice_set": [{"id": 19}]},
		  {"pod": {"id": 13}}],
		"rackcontrollers": [{"system_id": "r", "interface_set": [{"id": 27, "links": [{"id": 28}]}]}]}`)
	g.Expect(db.Update(func() error {
		for kind, want := range map[string]int{
			"pools": 6, "domains": 7, "spaces": 8, "fabrics": 9, "vlans": 10, "subnets": 11, "ranges": 12, "bootresources": 13, "vmhosts": 14,
			"dnsresources": 15, "dnsrecords": 16, "virtualmachines": 18, "interfaces": 28, "links": 29, "blockdevices": 20, "zones": 2, "machines": 3, "tags": 1,
		} {
			g.Expect(db.Next(kind)).To(Equal(want), kind)
		}
		db.Reserve("pools", 3)
		g.Expect(db.Next("pools")).To(Equal(7), "a smaller number takes nothing back")
		return nil
	})).To(Succeed())
	g.Expect(db.Machines.All()[0].VM.ID).To(Equal(16))
	g.Expect(db.Machines.All()[1].VM.ID).To(Equal(17), "an instance without a number gets one")
	g.Expect(db.Spaces.All()).To(HaveLen(1), "what has no space is in none")
}

// TestPlacesThatAreMade verifies that zones, pools, domains and tags that only machines name are created.
func TestPlacesThatAreMade(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"machines": [{"zone": "x", "pool": "p", "domain": "d.example", "tag_names": ["t"]}, {"zone": "y", "pool": "q", "domain": "e.example", "tag_names": ["u", "t"]},
		{"zone": "x", "pool": {"id": 9, "name": "p"}}], "spaces": [{"id": 0, "name": "first"}]}`)
	ids := func(of func(*inventory.Machine) int) []int {
		var out []int
		for _, m := range db.Machines.All() {
			out = append(out, of(m))
		}
		return out
	}
	g.Expect(ids(func(m *inventory.Machine) int { return m.ZoneID })).To(Equal([]int{2, 3, 2}))
	g.Expect(ids(func(m *inventory.Machine) int { return m.PoolID })).To(Equal([]int{1, 2, 1}))
	g.Expect(ids(func(m *inventory.Machine) int { return m.DomainID })).To(Equal([]int{1, 2, 0}))
	g.Expect(db.Zones.Get(2)).To(HaveField("Name", "x"))
	g.Expect(db.Pools.Get(2)).To(HaveField("Name", "q"))
	g.Expect(db.Domains.Get(2)).To(And(HaveField("Name", "e.example"), HaveField("Authoritative", true), HaveField("Default", false)))
	g.Expect(db.Tags.All()).To(HaveExactElements(And(HaveField("ID", 1), HaveField("Name", "t")), And(HaveField("ID", 2), HaveField("Name", "u"))))
	g.Expect(db.Spaces.Get(0)).To(HaveField("Name", "first"))
}

// TestDefaultDomain verifies that every site has a default domain: the one with ID 0, unless the seed sets a different
// one.
func TestDefaultDomain(t *testing.T) {
	for seed, want := range map[string]string{
		`[]`: "0 maas true", `[{"id": 0, "name": "lab"}]`: "0 lab true", `[{"id": 3, "name": "lab"}]`: "0 maas true, 3 lab false",
		`[{"id": 0, "name": "lab"}, {"id": 3, "name": "prod", "is_default": true}]`: "0 lab false, 3 prod true",
	} {
		t.Run("When the domains are "+seed+", there should be one default domain", func(t *testing.T) {
			g := NewWithT(t)
			db := load(t, `{"domains": `+seed+`, "machines": [{"hostname": "one"}]}`)
			var got []string
			for _, d := range db.Domains.All() {
				got = append(got, fmt.Sprint(d.ID, " ", d.Name, " ", d.Default))
			}
			g.Expect(strings.Join(got, ", ")).To(Equal(want))
			g.Expect(db.Domains.Get(db.MachineByName("one").DomainID).Default).To(BeTrue())
		})
	}
}

// TestOtherNames verifies that lists may have the names of their endpoints or their older names.
func TestOtherNames(t *testing.T) {
	for name, count := range map[string]func(*inventory.DB) int{
		"boot-resources": func(db *inventory.DB) int { return len(db.BootResources.All()) },
		"vm-hosts":       func(db *inventory.DB) int { return len(db.VMHosts.All()) },
		"pods":           func(db *inventory.DB) int { return len(db.VMHosts.All()) },
		"pools":          func(db *inventory.DB) int { return len(db.Pools.All()) - 1 },
		"resource-pools": func(db *inventory.DB) int { return len(db.Pools.All()) - 1 },
		"resource_pools": func(db *inventory.DB) int { return len(db.Pools.All()) - 1 },
		"dns-resources":  func(db *inventory.DB) int { return len(db.DNSResources.All()) },
	} {
		db := load(t, `{"`+name+`": [{"name": "x", "fqdn": "x.maas"}], "domains": [{"id": 0, "name": "maas", "is_default": true}]}`)
		NewWithT(t).Expect(count(db)).To(Equal(1), name)
	}
}

func TestPowerAndSettingsOfASeed(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"machines": [{"system_id": "a", "power_type": "ipmi", "power_parameters": {"power_user": "root"}, "agent_name": "mine", "swap_size": 0}],
		"config": {"node_timeout": 45, "default_distro_series": "noble"}}`)
	g.Expect(db.Machines.Get("a")).To(And(HaveField("PowerType", "ipmi"), HaveField("PowerParameters", HaveKeyWithValue("power_user", "root")),
		HaveField("AgentName", "mine"), HaveField("SwapSize", HaveValue(Equal(int64(0)))), HaveField("Extra", Not(HaveKey("power_parameters")))))
	g.Expect(load(t, `{"boot_resources": [{"name": "disk", "filetype": "ddgz"}]}`).BootResources.All()).To(HaveExactElements(HaveField("FileType", "ddgz")))
	g.Expect(db.Setting("node_timeout")).To(Equal(45.0))
	g.Expect(db.Setting("default_distro_series")).To(Equal("noble"))
	g.Expect(db.Setting("maas_name")).To(BeNil())
}

// TestUsage verifies that the resources of VMs and the other usage of a host are added up, also for each storage pool.
func TestUsage(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"vm_hosts": [{"id": 3, "name": "h", "used": {"cores": 6, "memory": 9000, "local_storage": 500}, "total": {"cores": 1},
		  "storage_pools": [{"name": "slow", "default": true, "used": 300}, {"id": "2", "name": "fast", "used": 150}]}, {"id": 4, "name": "other"}],
		"machines": [{"pod": 3, "cpu_count": 4, "memory": 8000, "blockdevice_set": [{"size": 100}, {"size": 200, "storage_pool": "2"}, {"size": 7, "type": "virtual"}]},
		  {"pod": {"id": 3}, "cpu_count": 4, "memory": 8000}, {"pod": 4, "cpu_count": 9}, {"cpu_count": 9}]}`)
	h := db.VMHosts.Get(3)
	g.Expect(h).To(And(HaveField("OtherCores", 0), HaveField("OtherMemory", int64(0)), HaveField("OtherStorage", int64(200))), "never less than nothing")
	g.Expect(db.Used(h)).To(Equal(inventory.Usage{Cores: 8, Memory: 16000, Storage: 500, Pools: map[string]int64{"slow": 300, "2": 200}}))
	g.Expect(db.MachinesOf(3)).To(HaveLen(2))
	g.Expect(db.HostedBy("nobody")).To(BeEmpty())
	pools := []string{}
	for _, d := range db.Machines.All()[0].Disks {
		pools = append(pools, d.Pool)
	}
	g.Expect(pools).To(Equal([]string{"slow", "2", "slow"}))
}

func TestClonesShareNothingThatChanges(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"vm_hosts": [{"id": 3, "name": "h", "total": {"local_storage": 9}}], "machines": [{"system_id": "a", "pod": 3,
		"power_parameters": {"power_user": "u"}, "interface_set": [{"tags": ["x"]}], "blockdevice_set": [{"size": 1}]}]}`)
	m := db.Machines.Get("a")
	m.Task = &inventory.Task{Step: 1}
	c := m.Clone()
	c.PowerParameters["power_user"], c.Interfaces[0].Tags[0], c.Disks[0].Size, c.Task.Step, c.VM.Lost, c.Interfaces[0].Name = "!", "!", 9, 2, true, "!"
	g.Expect(m).To(And(HaveField("PowerParameters", HaveKeyWithValue("power_user", "u")), HaveField("Task.Step", 1), HaveField("VM.Lost", false)))
	g.Expect(m.Interfaces[0]).To(And(HaveField("Tags", ConsistOf("x")), HaveField("Name", "eth0")))
	g.Expect(m.Disks[0].Size).To(Equal(int64(1)))
	h := db.VMHosts.Get(3)
	h.Clone().StoragePools[0].Other = 5
	g.Expect(h.StoragePools[0].Other).To(BeZero())
}
