// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func composeOn(host int, form ...string) step {
	return ask("admin", fmt.Sprintf("POST vm-hosts/%d/?op=compose", host), append(form, "skip_commissioning", "true")...)
}

// TestComposeDefaults verifies the defaults of a VM: the minimum size, the default zone and domain, and the pool of its
// host.
func TestComposeDefaults(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.WithVMHost)
	story(t, site, composeOn(7))
	vm := site.Machines()[5]
	g.Expect(vm).To(And(HaveField("CPUCount", 1), HaveField("Memory", int64(2048)), HaveField("ZoneID", 1), HaveField("PoolID", 1), HaveField("DomainID", 0),
		HaveField("Architecture", "amd64/generic"), HaveField("Status", status.Ready), HaveField("PowerState", "off"), HaveField("PowerType", "lxd"),
		HaveField("Hostname", MatchRegexp("^[a-z]+-[a-z]+$")), HaveField("Dynamic", false), HaveField("Commissioned", true)))
	g.Expect(vm.PowerParameters).To(And(HaveKeyWithValue("instance_name", vm.Hostname), HaveKeyWithValue("project", "default"),
		HaveKeyWithValue("power_address", "lxd-1.lxd:8443")))
	g.Expect(vm.Disks).To(HaveExactElements(And(HaveField("Name", "sda"), HaveField("Size", int64(8e9)), HaveField("Type", "physical"), HaveField("Pool", "default"))))
	g.Expect(vm.Interfaces).To(HaveExactElements(And(HaveField("Name", "eth0"), HaveField("Enabled", true), HaveField("MAC", HavePrefix("00:16:3e:")))))
	g.Expect(vm.Interfaces[0].Links).To(HaveExactElements(And(HaveField("Mode", "auto"), HaveField("SubnetID", HaveValue(Equal(1))), HaveField("IP", ""))))
	story(t, site,
		ask("alice", "GET tags/").with("name=fast gpu virtual"), // The VM has the host's tag, so the tag exists now.
		ask("alice", "GET machines/?tags=virtual").with("system_id="+vm.SystemID),
		composeOn(7, "hostname", "  spaced  ", "storage", "root:10(ssd,fast),20"),
		ask("alice", "GET machines/?hostname=spaced").with("storage=30000"),
	)
	disks := site.Has("spaced").Disks
	g.Expect(disks).To(HaveExactElements(And(HaveField("Name", "sda"), HaveField("Tags", ConsistOf("ssd", "fast"))), And(HaveField("Name", "sdb"), HaveField("Tags", BeEmpty()))))
	g.Expect([]any{disks[0].Extra["serial"], disks[1].Extra["serial"]}).To(Equal([]any{"lxd_root", "lxd_disk1"}))
}

func TestComposeForms(t *testing.T) {
	const whole, more, less = "Enter a whole number.", "Ensure this value is less than or equal to ", "Ensure this value is greater than or equal to "
	tests := map[string]struct {
		form []string
		says string // empty if the VM is composed
		cpus int
	}{
		"all cores":                     {[]string{"cores", "14"}, "", 14},
		"a whole number with decimals":  {[]string{"cores", " 4.00 "}, "", 4},
		"half a core":                   {[]string{"cores", "4.5"}, `{"cores": ["` + whole + `"]}`, 0},
		"no cores":                      {[]string{"cores", "0"}, `{"cores": ["` + less + `1."]}`, 0},
		"a negative number of cores":    {[]string{"cores", "-4"}, `{"cores": ["` + less + `1."]}`, 0},
		"more cores than any host has":  {[]string{"cores", "99999999999999999999"}, `{"cores": ["` + more + `16."]}`, 0},
		"the minimum memory":            {[]string{"memory", "1024"}, "", 1},
		"less than the minimum memory":  {[]string{"memory", "1023"}, `{"memory": ["` + less + `1024."]}`, 0},
		"a slow processor":              {[]string{"cpu_speed", "299"}, `{"cpu_speed": ["` + less + `300."]}`, 0},
		"the slowest processor":         {[]string{"cpu_speed", "300"}, "", 1},
		"one core twice":                {[]string{"pinned_cores", "3", "pinned_cores", "3"}, "", 1},
		"three cores, in disorder":      {[]string{"pinned_cores", "9", "pinned_cores", "0", "pinned_cores", "15"}, "", 3},
		"a core that does not exist":    {[]string{"pinned_cores", "0", "pinned_cores", "-1"}, `{"pinned_cores": ["Select a valid choice. -1 is not one of the available choices."]}`, 0},
		"cores by name":                 {[]string{"pinned_cores", "all"}, `{"pinned_cores": ["Select a valid choice. all is not one of the available choices."]}`, 0},
		"the name of a machine":         {[]string{"hostname", "one"}, `{"hostname": ["Node with hostname \"one\" already exists"]}`, 0},
		"the name of a controller":      {[]string{"hostname", "region"}, `{"hostname": ["Node with hostname \"region\" already exists"]}`, 0},
		"a zone by name":                {[]string{"zone", "north"}, `{"zone": [` + noChoice + `]}`, 0},
		"a zone, pool and domain by ID": {[]string{"zone", "2", "pool", "0", "domain", "1"}, "", 1},
		"an unknown domain":             {[]string{"domain", "9"}, `{"domain": [` + noChoice + `]}`, 0},
		"an architecture of the host":   {[]string{"architecture", "amd64/generic"}, "", 1},
		"half an architecture":          {[]string{"architecture", "amd64"}, `{"architecture": ["Select a valid choice. amd64 is not one of the available choices."]}`, 0},
	}
	for name, test := range tests {
		t.Run("When a VM requests "+name+", it should be composed or rejected as by MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.WithVMHost)
			if test.says != "" {
				story(t, site, composeOn(7, test.form...).is(400, test.says))
				g.Expect(site.Machines()).To(HaveLen(5))
				return
			}
			story(t, site, composeOn(7, test.form...))
			g.Expect(site.Machines()[5].CPUCount).To(Equal(test.cpus))
		})
	}
}

// TestRoom verifies that the host's resources of each kind are checked, and that the error message lists all
// insufficient resources.
func TestRoom(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.WithVMHost)
	story(t, site,
		composeOn(7, "cores", "15", "memory", "65536").is(503, "Unable to compose KVM instance in 'lxd-1'. CPU overcommit ratio is 1.0 and there are 14 available "+
			"resources; 15 requested.Memory overcommit ratio is 1.0 and there are 61440 available resources; 65536 requested."),
		composeOn(7, "cores", "14", "memory", "61440"),
		composeOn(7, "cores", "1").is(503, ""),
		ask("admin", "PUT vm-hosts/7/", "cpu_over_commit_ratio", "1.5", "memory_over_commit_ratio", "1.5"),
		composeOn(7, "cores", "8", "memory", "1024"),
		composeOn(7, "cores", "1", "memory", "1024").is(503, "Unable to compose KVM instance in 'lxd-1'. CPU overcommit ratio is 1.5 and there are -8 available resources; 1 requested."),
	)
	g.Expect(site.Do("admin", "POST", "vm-hosts/7/?op=compose", "cores", "1").Header.Get("Retry-After")).To(Equal("10"))
}

func TestPoolsOfDisks(t *testing.T) {
	pools := func(list ...inventory.StoragePool) func(*inventory.VMHost) {
		return func(h *inventory.VMHost) { h.StoragePools = list }
	}
	small, large := inventory.StoragePool{ID: "1", Name: "small", Total: 20e9}, inventory.StoragePool{ID: "2", Name: "large", Total: 100e9}
	standard := inventory.StoragePool{ID: "3", Name: "std", Total: 50e9, Default: true}
	tests := map[string]struct {
		host    func(*inventory.VMHost)
		storage string
		want    string
	}{
		"no pool is named":                      {pools(small, standard, large), "8,8", "3 3"},
		"a pool is named":                       {pools(small, standard, large), "8(large),8", "2 3"},
		"several pools are named":               {pools(small, standard, large), "8(large,small),60(small,large)", "1 2"},
		"an unknown pool is named":              {pools(small, standard), "8(gold)", "3"},
		"the disks fill the pool":               {pools(small, standard), "20(small),50", "1 3"},
		"there is no space for the second disk": {pools(small, standard), "30,30", "500 Not enough space in default storage pool: std"},
		"a named pool has no space":             {pools(small, standard), "15(small),15(small)", "500 Not enough storage space on storage pools: small"},
		"no pool is the default":                {pools(small, large), "8,15", "1 2"},
		"no pool is the default or has space":   {pools(small, large), "200", "500 Not enough storage space on any storage pools: small, large"},
		"there is no pool":                      {pools(), "8", "500 Not enough storage space on any storage pools: "},
		"the space is exactly sufficient":       {pools(standard), "50", "3"},
	}
	for name, test := range tests {
		t.Run("When "+name+", the disks should be in the storage pools that MAAS selects", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.WithVMHost)
			site.ChangeVMHost("lxd-1", test.host)
			answer := site.Do("admin", "POST", "vm-hosts/7/?op=compose", "hostname", "vm", "storage", test.storage, "skip_commissioning", "true")
			if answer.Code != 200 {
				g.Expect(fmt.Sprint(answer.Code, " ", answer.Body)).To(Equal(test.want))
				return
			}
			var got []string
			for _, d := range site.Has("vm").Disks {
				got = append(got, d.Pool)
			}
			g.Expect(strings.Join(got, " ")).To(Equal(test.want))
		})
	}
}

// TestNetworksOfVMs verifies the choice of the host's interface (a bridge before a bond before others) and the
// requested addresses.
func TestNetworksOfVMs(t *testing.T) {
	one, two := 1, 2
	bridged := func(t *testing.T) *simtest.Site {
		site := onHost(t)
		site.Change("aaaaa3", func(m *inventory.Machine) {
			m.Interfaces = []inventory.Interface{
				{ID: 91, Name: "br0", Type: "bridge", VLANID: &one, Tags: []string{"any"}}, {ID: 92, Name: "bond0", Type: "bond", VLANID: &two, Tags: []string{"any"}},
				{ID: 93, Name: "br1", Type: "bridge", VLANID: &one, Tags: []string{"any", "low"}}, {ID: 94, Name: "eth0", Type: "physical", VLANID: &two, Tags: []string{"any", "low"}},
				{ID: 95, Name: "eth1", Type: "physical", Tags: []string{"loose"}},
			}
		})
		return site
	}
	tests := map[string]struct{ interfaces, want string }{
		"any interface":                     {"a:tag=any", "a 1 auto"},
		"an interface that is not a bridge": {"a:tag=any,not_type=bridge;b:type=bridge", "a 2 auto, b 1 auto"},
		"an interface without a network":    {"a:tag=loose", "400 This pod does not match the specified networks."},
		"an interface that does not exist":  {"a:tag=none", "400 This pod does not match the specified networks."},
		"an interface without an address":   {"a:type=bridge,mode=unconfigured", "a 1 link_up"},
		"two addresses":                     {"a:ip=10.9.0.60,ip=10.9.0.61", "a 1 static static"},
		"one address on two interfaces":     {"a:ip=10.9.0.60;b:ip=10.9.0.60", "a 1 static, b 1 static"},
	}
	for name, test := range tests {
		t.Run("When a VM requests "+name+", its interfaces should have the networks and links that MAAS selects", func(t *testing.T) {
			g := NewWithT(t)
			site := bridged(t)
			answer := site.Do("admin", "POST", "vm-hosts/7/?op=compose", "hostname", "vm", "interfaces", test.interfaces, "skip_commissioning", "true")
			if answer.Code != 200 {
				g.Expect(fmt.Sprint(answer.Code, " ", answer.Body)).To(Equal(test.want))
				g.Expect(site.Machine("vm")).To(BeNil())
				return
			}
			var got []string
			for _, nic := range site.Has("vm").Interfaces {
				line := fmt.Sprint(nic.Name, " ", *nic.VLANID)
				for _, link := range nic.Links {
					line += " " + link.Mode
				}
				got = append(got, line)
			}
			g.Expect(strings.Join(got, ", ")).To(Equal(test.want))
		})
	}
	t.Run("When no network has DHCP, a VM should have no interface", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, strings.Replace(simtest.WithVMHost, `"name": "untagged",`, `"name": "untagged", "dhcp_on": false,`, 1))
		story(t, site, composeOn(7, "hostname", "vm"))
		g.Expect(site.Has("vm").Interfaces).To(BeEmpty())
		story(t, site, ask("alice", "POST machines/"+site.Has("vm").SystemID+"/?op=deploy").is(400, `{"network": ["Node must be configured to use a network"]}`))
	})
}

// hosts returns a site with two LXD hosts. The first can be over-committed.
func hosts(t *testing.T) *simtest.Site {
	t.Helper()
	site := simtest.New(t, simtest.WithVMHosts(simtest.Seed(), simtest.VMHost{Name: "elastic", Zone: "az1", Tags: []string{"big"}}, simtest.VMHost{Name: "rigid", Zone: "az2"},
		simtest.VMHost{Name: "asleep", Zone: "az1"}))
	site.ChangeVMHost("rigid", func(h *inventory.VMHost) { h.Capabilities = []string{"composable"} })
	site.ChangeVMHost("asleep", func(h *inventory.VMHost) { h.Capabilities = []string{"over_commit"} })
	return site
}

// TestWhichHost verifies the order of hosts for an allocation that no machine satisfies. Hosts without over-commit
// are first, and a host with insufficient resources is skipped.
func TestWhichHost(t *testing.T) {
	tests := map[string]struct {
		form []string
		host string // empty if there is none
	}{
		"nothing is requested":                                {nil, "rigid"},
		"a zone is requested":                                 {[]string{"zone", "az1"}, "elastic"},
		"tags are requested":                                  {[]string{"tags", "big"}, "elastic"},
		"tags are excluded":                                   {[]string{"not_tags", "big"}, "rigid"},
		"a host is requested":                                 {[]string{"pod", "elastic"}, "elastic"},
		"a host is excluded":                                  {[]string{"not_pod", "rigid"}, "elastic"},
		"a host that cannot compose is requested":             {[]string{"pod", "asleep"}, ""},
		"more cores than a host has are requested":            {[]string{"cpu_count", "17"}, ""},
		"less memory than a VM has is requested":              {[]string{"mem", "512"}, ""},
		"disks larger than the storage pools are requested":   {[]string{"storage", "2000"}, ""},
		"a fraction of a core is requested":                   {[]string{"cpu_count", "2.5"}, "rigid"},
		"an unavailable kind of host is requested":            {[]string{"pod_type", "virsh"}, ""},
		"an architecture with a subarchitecture is requested": {[]string{"arch", "amd64/generic"}, "rigid"},
		"an unknown system ID is requested":                   {[]string{"system_id", "zzzzzz"}, ""},
	}
	for name, test := range tests {
		t.Run("When "+name+", the VM should be composed on the matching host", func(t *testing.T) {
			g := NewWithT(t)
			site := hosts(t)
			if answer := site.Do("admin", "POST", "tags/", "name", "big"); answer.Code != 200 {
				t.Fatal(answer.Body)
			}
			answer := site.Do("alice", "POST", "machines/?op=allocate", test.form...)
			if test.host == "" {
				g.Expect(answer.Code).To(Equal(409), answer.Body)
				g.Expect(site.Machines()).To(BeEmpty())
				return
			}
			g.Expect(answer.Code).To(Equal(200), answer.Body)
			g.Expect(answer.Object()["pod"]).To(HaveKeyWithValue("name", test.host))
			g.Expect(site.Machines()).To(HaveExactElements(And(HaveField("Dynamic", true), HaveField("Owner", "alice"), HaveField("Status", status.Allocated))))
		})
	}
	t.Run("When the first host is full, the next host should compose the machine", func(t *testing.T) {
		g := NewWithT(t)
		site := hosts(t)
		for _, host := range []string{"rigid", "elastic"} {
			answer := site.Do("alice", "POST", "machines/?op=allocate", "cpu_count", "16")
			g.Expect(answer.Object()["pod"]).To(HaveKeyWithValue("name", host))
		}
		story(t, site, ask("alice", "POST machines/?op=allocate", "cpu_count", "16").is(409, ""))
	})
}

func TestVMHostUpdates(t *testing.T) {
	site := hosts(t)
	story(t, site,
		ask("admin", "PUT vm-hosts/1/", "type", "xen").is(400, `{"type": ["Select a valid choice. xen is not one of the available choices."]}`),
		ask("admin", "PUT vm-hosts/1/", "type", "lxd", "tags", "").with("tags=[pod-console-logging]"),
		ask("admin", "PUT vm-hosts/1/", "name", "rigid").is(400, `{"name": ["Pod with this Name already exists."]}`),
		ask("admin", "PUT vm-hosts/1/", "name", "elastic").with("name=elastic"),
		ask("admin", "PUT vm-hosts/1/", "power_address", "rigid.lxd:8443").is(400, "Pod rigid with type and parameters already exist."),
		ask("admin", "PUT vm-hosts/1/", "power_address", "rigid.lxd:8443", "project", "other").with("name=elastic"),
		ask("admin", "GET vm-hosts/1/?op=parameters").with("power_address=rigid.lxd:8443", "project=other"),
		ask("admin", "PUT vm-hosts/1/", "power_address", "").is(400, `{"power_address": ["This field is required."]}`),
		ask("admin", "PUT vm-hosts/1/", "cpu_over_commit_ratio", "0", "memory_over_commit_ratio", "10").with("cpu_over_commit_ratio=0", "memory_over_commit_ratio=10"),
		ask("admin", "PUT vm-hosts/1/", "cpu_over_commit_ratio", "10.5").is(400, `{"cpu_over_commit_ratio": ["Ensure this value is less than or equal to 10."]}`),
		ask("admin", "PUT vm-hosts/1/", "default_macvlan_mode", "vepa").with("default_macvlan_mode=vepa"),
		ask("admin", "PUT vm-hosts/1/", "pool", "default").with("default_macvlan_mode=vepa", "pool.name=default"),
		ask("admin", "PUT vm-hosts/1/", "default_macvlan_mode", "").with("default_macvlan_mode="),
		ask("admin", "POST vm-hosts/", "type", "virsh", "power_address", "qemu+ssh://h/system", "power_pass", "x", "certificate", "c").with("id=4"),
		ask("admin", "GET vm-hosts/4/?op=parameters").is(200, `{"power_address":"qemu+ssh://h/system","power_pass":"x"}`),
		ask("admin", "POST vm-hosts/", "type", "lxd", "power_address", "y", "pool", "nowhere").is(400, `{"pool": [`+noChoice+`]}`),
	)
}
