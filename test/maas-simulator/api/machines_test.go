// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestListMachines(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa5", func(m *inventory.Machine) { m.Status, m.Owner = status.Deployed, "bob" })
	story(t, site,
		ask("admin", "GET machines/").with("hostname=one two three four five"),
		ask("alice", "GET machines/").with("hostname=one two three four"),
		ask("bob", "GET machines/").with("hostname=one two three four five"),
		ask("admin", "GET machines/?hostname=one&hostname=three").with("hostname=one three"),
		ask("admin", "GET machines/?id=aaaaa2&id=zzzzzz").with("hostname=two"),
		ask("admin", "GET machines/?zone=north&pool=blue&tags=gpu").with("hostname=three"),
		ask("admin", "GET machines/?not_in_zone=north").with("hostname=one four five"),
		ask("admin", "GET machines/?not_in_pool=blue&not_tags=gpu").with("hostname=one four"),
		ask("admin", "GET machines/?tags=fast,gpu").with("hostname=three"),
		ask("admin", "GET machines/?cpu_count=8&mem=16384").with("hostname=three five"),
		ask("admin", "GET machines/?status=deployed").with("hostname=five"),
		ask("admin", "GET machines/?not_status=ready").with("hostname=five"),
		ask("admin", "GET machines/?simple_status=deployed").with("hostname=five"),
		ask("admin", "GET machines/?owner=bob").with("hostname=five"),
		ask("admin", "GET machines/?mac_address=52:54:00:00:00:13").with("hostname=three"),
		ask("admin", "GET machines/?domain=maas&power_state=off&not_hostname=one").with("hostname=two three four five"),
		ask("admin", "GET machines/?storage=root:100(ssd)").with("hostname=three"),
		ask("admin", "GET machines/?interfaces=a:tag=sriov").with("hostname=three"),
		ask("admin", "GET machines/?subnets=storage-net").with("hostname=three"),
		ask("admin", "GET machines/?vlans=vid:30").with("hostname=three"),
		ask("admin", "GET machines/?fabrics=fabric-0&arch=amd64").with("hostname=one two three four"),
		ask("admin", "GET machines/?agent_name=x").is(200, "[]"),
		ask("admin", "GET machines/?pod=lxd-1").is(200, "[]"),
		ask("admin", "GET machines/?zone=x").is(400, `{"zone": ["No such zone(s): x."]}`),
		ask("admin", "GET machines/?pool=x&pool=y").is(400, `{"pool": ["No such pool(s): x, y."]}`),
		ask("admin", "GET machines/?tags=x").is(400, `{"tags": ["No such tag(s): 'x'."]}`),
		ask("admin", "GET machines/?status=4").is(400, `{"status": ["Select a valid choice. 4 is not one of the available choices."]}`),
		ask("admin", "GET machines/?parent=x").is(400, `{"parent": ["No such constraint."]}`),
		ask("admin", "GET machines/?mac_address=zz").is(400, `{"mac_address": ["'zz' is not a valid MAC address."]}`),
		ask("admin", "GET machines/?op=is_registered&mac_address=52:54:00:00:00:01").is(200, "true"),
		ask("", "GET machines/?op=is_registered&mac_address=52:54:00:00:00:99").is(200, "false"),
		ask("alice", "GET machines/aaaaa5/").is(403, ""),
		ask("alice", "GET machines/aaaaa1/").with("hostname=one", "fqdn=one.maas", "zone.name=default", "status_name=Ready", "memory=4096", "storage=40000"),
		ask("alice", "GET machines/zzzzzz/").is(404, "No Machine matches the given query."),
		ask("alice", "GET machines/?op=power_parameters").is(403, ""),
		ask("admin", "GET machines/aaaaa4/?op=power_parameters").is(200, "{}"),
		ask("admin", "GET machines/?op=power_parameters&id=aaaaa1").with("aaaaa1.power_user=maas"),
		ask("admin", "GET nodes/aaaaa1/blockdevices/").with("name=sda"),
		ask("admin", "GET nodes/aaaaa1/blockdevices/sda/").with("size=4e+10", "type=physical"),
		ask("admin", "GET nodes/aaaaa1/blockdevices/99/").is(404, "No BlockDevice matches the given query."),
		ask("admin", "GET nodes/").with("hostname=one two three four five region"),
		ask("admin", "GET nodes/?zone=north").with("hostname=two three"),
		ask("admin", "GET nodes/zzzzzz/").is(404, "No Node matches the given query."),
	)
}

func TestAllocate(t *testing.T) {
	tests := map[string]struct {
		form []string
		gets string
		code int
		says string
	}{
		"missing":                           {nil, "one", 200, ""},
		"a number of CPUs":                  {[]string{"cpu_count", "3"}, "two", 200, ""},
		"an amount of memory":               {[]string{"mem", "9000"}, "three", 200, ""},
		"a negative amount of memory":       {[]string{"mem", "-5"}, "one", 200, ""},
		"tags as a list":                    {[]string{"tags", "fast,gpu"}, "three", 200, ""},
		"repeated tags":                     {[]string{"tags", "fast", "tags", "gpu"}, "three", 200, ""},
		"an excluded tag":                   {[]string{"tags", "gpu", "not_tags", "fast"}, "five", 200, ""},
		"one of two zones":                  {[]string{"zone", "north", "zone", "south"}, "two", 200, ""},
		"not in a zone":                     {[]string{"not_in_zone", "default", "not_in_zone", "north"}, "four", 200, ""},
		"a pool":                            {[]string{"pool", "blue"}, "two", 200, ""},
		"not in a pool":                     {[]string{"not_in_pool", "default"}, "two", 200, ""},
		"a name":                            {[]string{"name", "four"}, "four", 200, ""},
		"a name with its domain":            {[]string{"name", "four.maas"}, "four", 200, ""},
		"an id":                             {[]string{"system_id", "aaaaa3"}, "three", 200, ""},
		"a root disk":                       {[]string{"storage", "root:100"}, "three", 200, ""},
		"a second disk":                     {[]string{"storage", "root:10(ssd),data:900(rotary)"}, "three", 200, ""},
		"a root disk larger than any":       {[]string{"storage", "500"}, "", 409, `No available machine matches constraints: [('storage', ['500'])] (resolved to "storage=500")`},
		"an interface":                      {[]string{"interfaces", "a:subnet=storage-net"}, "three", 200, ""},
		"an excluded interface tag":         {[]string{"interfaces", "a:not_tag=sriov", "cpu_count", "8"}, "three", 200, ""},
		"a space":                           {[]string{"subnets", "space:prod", "cpu_count", "8"}, "three", 200, ""},
		"too much memory":                   {[]string{"mem", "999999"}, "", 409, `No available machine matches constraints: [('mem', ['999999'])] (resolved to "mem=999999.0")`},
		"several that no machine satisfies": {[]string{"zone", "south", "tags", "fast", "agent_name", "me"}, "", 409, `No available machine matches constraints: [('zone', ['south']), ('tags', ['fast']), ('agent_name', ['me'])] (resolved to "tags=fast zone=south")`},
		"an unknown name":                   {[]string{"name", "it's"}, "", 409, `No available machine matches constraints: [('name', ["it's"])] (resolved to "name=it's")`},
		"an unknown id":                     {[]string{"system_id", "zzzzzz"}, "", 409, "No machine with system ID zzzzzz available."},
		"an unknown zone":                   {[]string{"zone", "x"}, "", 400, `{"zone": ["No such zone(s): x."]}`},
		"an unknown excluded tag":           {[]string{"not_tags", "x"}, "", 400, `{"not_tags": ["No such tag(s): 'x'."]}`},
		"an invalid number of CPUs":         {[]string{"cpu_count", "many"}, "", 400, `{"cpu_count": ["Invalid CPU count: number required."]}`},
		"an invalid number of MiB":          {[]string{"mem", "8G"}, "", 400, `{"mem": ["Invalid memory: number of MiB required."]}`},
		"an unknown architecture":           {[]string{"arch", "arm64"}, "", 400, `{"arch": ["Architecture not recognised."]}`},
		"an unknown constraint":             {[]string{"colour", "red"}, "", 400, `{"colour": ["No such constraint."]}`},
		"a malformed disk constraint":       {[]string{"storage", "big"}, "", 400, `{"storage": ["Malformed storage constraint, \"big\"."]}`},
		"a malformed interface constraint":  {[]string{"interfaces", "x"}, "", 400, `{"interfaces": ["Malformed constraint: 'x' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')"]}`},
		"an unknown space":                  {[]string{"interfaces", "a:space=x"}, "", 404, "No Space matches the given query."},
		"an unknown subnet":                 {[]string{"subnets", "nosuch"}, "", 400, `{"subnets": ["No matching subnets found."]}`},
		"an interface on an unknown subnet": {[]string{"interfaces", "a:subnet=nosuch"}, "", 409,
			`No available machine matches constraints: [('interfaces', ['a:subnet=nosuch'])] (resolved to "interfaces=a:subnet=nosuch")`},
		"an unknown fabric":             {[]string{"fabrics", "x"}, "", 400, `{"fabrics": ["No matching fabrics found."]}`},
		"an unknown VLAN":               {[]string{"vlans", "x"}, "", 400, `{"vlans": ["No matching VLANs found."]}`},
		"an invalid Boolean":            {[]string{"dry_run", "banana"}, "", 400, "Invalid dry_run: Value should be 'true' or 'false'"},
		"an unknown interface property": {[]string{"interfaces", "a:colour=red"}, "", 400, `{"interfaces": ["Unknown interfaces constraint: 'colour"]}`},
	}
	for name, test := range tests {
		t.Run("When the constraint is "+name+", the machine or error should be that of MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			answer := site.Do("alice", "POST", "machines/?op=allocate", test.form...)
			g.Expect(answer.Code).To(Equal(test.code), answer.Body)
			if test.says != "" {
				g.Expect(answer.Body).To(Equal(test.says))
				return
			}
			g.Expect(answer.Object()).To(And(HaveKeyWithValue("hostname", test.gets), HaveKeyWithValue("owner", "alice"), HaveKeyWithValue("status", 10.0)))
		})
	}
}

func TestAllocateDetails(t *testing.T) {
	t.Run("When no machine is left and there are no constraints, the error should name no constraints", func(t *testing.T) {
		site := simtest.New(t, simtest.Rack)
		for range 5 {
			NewWithT(t).Expect(site.Do("alice", "POST", "machines/?op=allocate").Code).To(Equal(200))
		}
		story(t, site, ask("alice", "POST machines/?op=allocate").is(409, "No machine available."))
	})
	t.Run("When labels are given, it should map them to the chosen disks and interfaces", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		answer := site.Do("alice", "POST", "machines/?op=allocate", "storage", "root:10,data:900", "interfaces", "fast:tag=sriov", "verbose", "true")
		m := site.Has("three")
		g.Expect(answer.Object()["constraints_by_type"]).To(And(
			HaveKeyWithValue("storage", map[string]any{"root": []any{float64(m.Disks[0].ID)}, "data": []any{float64(m.Disks[1].ID)}}),
			HaveKeyWithValue("interfaces", map[string]any{"fast": []any{float64(m.Interfaces[1].ID)}}),
			HaveKey("verbose_storage"),
		))
	})
	t.Run("When the request is a dry run, the machine should be left alone", func(t *testing.T) {
		site := simtest.New(t, simtest.Rack)
		story(t, site,
			ask("alice", "POST machines/?op=allocate", "dry_run", "true").with("hostname=one", "status_name=Ready", "owner=<nil>"),
			ask("alice", "GET machines/aaaaa1/").with("status_name=Ready"),
		)
	})
	t.Run("When an agent name is given, it should be stored and found but not printed, until the release", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		answer := site.Do("alice", "POST", "machines/?op=allocate", "agent_name", "mine-1")
		g.Expect(answer.Body).NotTo(ContainSubstring("mine-1"))
		story(t, site,
			ask("alice", "GET machines/?agent_name=mine-1").with("hostname=one"),
			ask("alice", "GET machines/?op=list_allocated&agent_name=other").with("hostname=one"),
			ask("admin", "GET machines/?op=list_allocated").is(200, "[]"),
			ask("alice", "POST machines/aaaaa1/?op=release").with("status_name=Ready", "owner=<nil>"),
			ask("alice", "GET machines/?agent_name=mine-1").is(200, "[]"),
		)
	})
	t.Run("When a bridge is requested, it should be removed with the allocation", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		site.Do("alice", "POST", "machines/?op=allocate", "bridge_all", "true")
		g.Expect(site.Has("one").Interfaces).To(HaveLen(2))
		g.Expect(site.Has("one").Interfaces[1]).To(And(HaveField("Name", "br-eth0"), HaveField("Type", "bridge"), HaveField("Links", HaveLen(1))))
		site.Do("alice", "POST", "machines/aaaaa1/?op=release")
		g.Expect(site.Has("one").Interfaces).To(HaveLen(1))
		g.Expect(site.Has("one").Interfaces[0].Links).To(HaveLen(1))
	})
	t.Run("When many clients allocate at once, each should get its own machine", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		var mu sync.Mutex
		got := map[string]int{}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				answer := site.Do("alice", "POST", "machines/?op=allocate")
				mu.Lock()
				defer mu.Unlock()
				if answer.Code == 200 {
					got[fmt.Sprint(answer.Object()["system_id"])]++
				}
			})
		}
		all.Wait()
		g.Expect(got).To(HaveLen(5))
		for id, n := range got {
			g.Expect(n).To(Equal(1), id)
		}
	})
	t.Run("When the same seed is used twice, it should generate the same IDs", func(t *testing.T) {
		g := NewWithT(t)
		var ids []string
		for range 2 {
			site := simtest.New(t, simtest.Rack)
			answer := site.Do("admin", "POST", "machines/", "architecture", "amd64", "mac_addresses", "52:54:00:00:01:01", "power_type", "manual")
			g.Expect(answer.Code).To(Equal(200), answer.Body)
			ids = append(ids, fmt.Sprint(answer.Object()["system_id"], answer.Object()["hostname"]))
		}
		g.Expect(ids[0]).To(Equal(ids[1]))
	})
}

func TestWriteMachines(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa5", func(m *inventory.Machine) { m.Status, m.Owner = status.Deployed, "bob" })
	story(t, site,
		ask("admin", "PUT machines/aaaaa1/", "hostname", "uno", "zone", "north", "pool", "blue", "description", "d", "swap_size", "0").
			with("hostname=uno", "zone.name=north", "pool.name=blue", "description=d", "swap_size=0"),
		ask("admin", "PUT machines/aaaaa1/", "hostname", "two").is(400, `{"hostname": ["Node with hostname 'two' already exists"]}`),
		ask("admin", "PUT machines/aaaaa1/", "hostname", "a b").is(400, `{"hostname": ["Label contains disallowed characters: 'a b'."]}`),
		ask("admin", "PUT machines/aaaaa1/", "zone", "x").is(400, `{"zone": ["Select a valid choice. That choice is not one of the available choices."]}`),
		ask("admin", "PUT machines/aaaaa1/", "cpu_count", "-1", "memory", "lots").is(400, `{"cpu_count": ["Ensure this value is greater than or equal to 0."], "memory": ["Enter a whole number."]}`),
		ask("admin", "PUT machines/aaaaa1/", "power_type", "steam").is(400, `{"power_type": ["Select a valid choice. steam is not one of the available choices."]}`),
		ask("admin", "PUT machines/aaaaa1/", "power_type", "ipmi", "power_parameters_power_user", "root", "cpu_count", "6").with("cpu_count=6"),
		ask("admin", "GET machines/aaaaa1/?op=power_parameters").with("power_user=root"),
		ask("alice", "PUT machines/aaaaa1/", "description", "x").is(403, ""),
		ask("alice", "DELETE machines/aaaaa1/").is(403, ""),
		ask("admin", "DELETE machines/aaaaa1/").is(204, ""),
		ask("admin", "DELETE machines/aaaaa1/").is(404, "No Machine matches the given query."),
		ask("alice", "POST machines/aaaaa5/?op=release").is(403, ""),
		ask("bob", "POST machines/aaaaa5/?op=lock").with("locked=true"),
		ask("bob", "POST machines/aaaaa5/?op=lock").is(409, "Machine aaaaa5 is already locked"),
		ask("bob", "POST machines/aaaaa5/?op=release").is(403, ""),
		ask("admin", "POST machines/aaaaa5/?op=release").is(403, ""),
		ask("admin", "DELETE machines/aaaaa5/").is(403, ""),
		ask("bob", "POST machines/aaaaa5/?op=unlock").with("locked=false"),
		ask("bob", "POST machines/aaaaa5/?op=set_workload_annotations", "cluster", "demo", "pool", "a").with("workload_annotations.cluster=demo", "owner_data.pool=a"),
		ask("bob", "POST machines/aaaaa5/?op=set_owner_data", "cluster", "").with("workload_annotations=map[pool:a]"),
		ask("alice", "POST machines/aaaaa2/?op=set_workload_annotations", "a", "b").is(409, "Cannot set owner data on a machine that is not allocated."),
		ask("bob", "POST machines/aaaaa5/?op=set_workload_annotations", "example.com/key", "x").is(500, "Invalid character in key name"),
		ask("bob", "GET machines/aaaaa5/").with("workload_annotations=map[pool:a]"),
		ask("alice", "POST machines/aaaaa2/?op=commission").is(403, ""),
		ask("alice", "POST machines/aaaaa2/?op=rescue_mode").is(403, ""),
		ask("alice", "POST machines/aaaaa2/?op=mark_fixed").is(403, ""),
		ask("admin", "POST machines/?op=release", "machines", "aaaaa2", "machines", "zzzzzz").is(400, "Unknown machine(s): zzzzzz."),
		ask("alice", "POST machines/?op=release", "machines", "aaaaa5").is(403, "You don't have the required permission to release the following machine(s): aaaaa5."),
		ask("admin", "POST machines/?op=set_zone", "nodes", "aaaaa2", "zone", "south").is(200, "null"),
		ask("admin", "GET machines/aaaaa2/").with("zone.name=south"),
		ask("alice", "POST machines/?op=set_zone", "nodes", "aaaaa2", "zone", "south").is(403, "This method is reserved for admin users."),
	)
}

func TestBulkRelease(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "bob", "on" })
	site.Change("aaaaa2", func(m *inventory.Machine) { m.Status = status.New })
	story(t, site,
		ask("bob", "POST machines/?op=release", "machines", "aaaaa1", "machines", "aaaaa2").
			is(409, "Machine(s) cannot be released in their current state: aaaaa2 ('New')."),
		ask("bob", "GET machines/aaaaa1/").with("status_name=Deployed"),
		ask("bob", "POST machines/?op=release", "machines", "aaaaa1", "machines", "aaaaa3").is(200, `["aaaaa1"]`),
		ask("bob", "GET machines/aaaaa1/").with("status_name=Releasing", "owner=bob"),
	)
	site.Settle(time.Minute)
	g.Expect(site.Has("one")).To(And(HaveField("Status", status.Ready), HaveField("Owner", ""), HaveField("PowerState", "off")))
}

func TestCreateMachines(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("admin", "POST machines/").is(400, `{"architecture": ["This field is required."], "mac_addresses": ["This field is required."]}`),
		ask("admin", "POST machines/", "architecture", "arm64", "mac_addresses", "zz").is(400, `{"architecture": ["'arm64/generic' is not a valid architecture.  It should be one of: '', 'amd64/generic'."], `+
			`"mac_addresses": ["One or more MAC addresses is invalid. ('zz' is not a valid MAC address.)"]}`),
		ask("admin", "POST machines/", "architecture", "amd64", "mac_addresses", "52:54:00:00:00:01").is(400, `{"mac_addresses": ["MAC address 52:54:00:00:00:01 already in use on one."]}`),
		ask("alice", "POST machines/", "architecture", "amd64/generic", "mac_addresses", "52:54:00:00:02:01", "hostname", "guest", "power_type", "ipmi").with("status_name=New"),
		ask("", "POST machines/", "architecture", "amd64/generic", "mac_addresses", "52:54:00:00:02:02", "hostname", "stranger", "power_type", "ipmi").with("status_name=New"),
		ask("admin", "POST machines/", "architecture", "amd64/generic", "mac_addresses", "52:54:00:00:02:03", "hostname", "idle", "power_type", "ipmi", "commission", "false").with("status_name=New"),
		ask("admin", "POST machines/", "architecture", "amd64/generic", "mac_addresses", "52:54:00:00:02:04", "hostname", "fresh.lab.example", "power_type", "ipmi",
			"power_parameters", `{"power_address": "192.0.2.7"}`).with("status_name=Commissioning", "fqdn=fresh.lab.example"),
		ask("admin", "POST machines/", "architecture", "amd64/generic", "mac_addresses", "52:54:00:00:02:05", "power_parameters", "{").is(400, `{"power_parameters": ["Failed to parse JSON power_parameters"]}`),
		ask("admin", "POST machines/", "architecture", "amd64/generic", "mac_addresses", "52:54:00:00:02:06", "hostname", "old", "power_type", "manual", "deployed", "true").with("status_name=Deployed", "owner=admin"),
	)
	guest := site.Has("guest").SystemID
	story(t, site,
		ask("alice", "POST machines/?op=accept", "machines", guest).is(403, "You don't have the required permission to accept the following machine(s): "+guest+"."),
		ask("admin", "POST machines/?op=accept", "machines", guest).with("status_name=Commissioning"),
		ask("admin", "POST machines/?op=accept_all").with("hostname=stranger idle"),
	)
	site.Settle(5 * time.Minute)
	for _, name := range []string{"guest", "stranger", "idle", "fresh"} {
		g.Expect(site.Has(name)).To(And(HaveField("Status", status.Ready), HaveField("Commissioned", true), HaveField("Owner", "")), name)
		g.Expect(site.Has(name).HasNetwork()).To(BeTrue(), "commissioning links the boot interface of %s", name)
	}
}

func TestVersions(t *testing.T) {
	fields := map[string][]string{
		"last_sync": {"3.3", "3.4", "3.5", "3.6", "3.7", "main"}, "parent": {"3.4", "3.5", "3.6", "3.7", "main"},
		"ephemeral_deploy": {"3.4", "3.5", "3.6", "3.7", "main"}, "error_description": {"3.5", "3.6", "3.7", "main"},
		"enable_kernel_crash_dump": {"3.6", "3.7", "main"}, "is_dpu": {"3.7", "main"},
	}
	for _, version := range []string{"3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "main"} {
		t.Run("When the version is "+version+", responses should have that version's fields and paths", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.WithVMHost, func(o *simulator.Options) { o.Version = version })
			machine := site.Do("admin", "GET", "machines/aaaaa1/").Object()
			for field, versions := range fields {
				if contains(versions, version) {
					g.Expect(machine).To(HaveKey(field))
				} else {
					g.Expect(machine).NotTo(HaveKey(field))
				}
			}
			pathOp := site.Do("admin", "POST", "machines/aaaaa1/op-release").Code
			if version == "3.2" {
				g.Expect(pathOp).To(Equal(404))
			} else {
				g.Expect(pathOp).To(Equal(200))
			}
			hosts := site.Do("admin", "GET", "vm-hosts/").Code
			if version == "main" {
				g.Expect(hosts).To(Equal(410))
				g.Expect(site.Do("admin", "POST", "vm-hosts/7/?op=compose").Code).To(Equal(410))
				g.Expect(site.Do("admin", "POST", "machines/aaaaa1/?op=deploy", "install_kvm", "true").Code).To(Equal(400))
			} else {
				g.Expect(hosts).To(Equal(200))
			}
			g.Expect(site.Do("", "GET", "version/").Body).To(ContainSubstring(`"version":"`))
		})
	}
	for _, version := range []string{"2.9", "3", "x.y", "3.99"} {
		_, err := simulator.New(simulator.Options{Version: version})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is not known: use 3.2 to 3.7, or main")), version)
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
