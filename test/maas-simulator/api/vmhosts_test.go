// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const (
	noChoice = `"Select a valid choice. That choice is not one of the available choices."`
	noPod    = "No Pod matches the given query."
)

func TestVMHosts(t *testing.T) {
	site := simtest.New(t, simtest.WithVMHost)
	story(t, site,
		ask("alice", "GET vm-hosts/").with("name=lxd-1"),
		ask("alice", "GET pods/7/").with("name=lxd-1", "total.cores=16", "used.cores=2", "available.memory=61440", "zone.name=north", "pool.name=blue", "host.system_id=<nil>"),
		ask("alice", "GET vm-hosts/9/").is(404, noPod),
		ask("alice", "GET vm-hosts/lxd-1/").is(500, "Field 'id' expected a number but got 'lxd-1'."),
		ask("admin", "POST vm-hosts/7/").is(400, "Unrecognised signature: method=POST op=None"),
		ask("admin", "POST vm-hosts/7/?op=explode").is(400, "Unrecognised signature: method=POST op=explode"),
		ask("admin", "PUT vm-hosts/").is(405, ""),
		ask("admin", "DELETE pods/").is(405, ""),
		ask("", "GET vm-hosts/").is(401, "Forbidden"),
		ask("admin", "POST vm-hosts/7/?op=add_tag").is(400, "No provided tag!"),
		ask("admin", "POST vm-hosts/9/?op=add_tag", "tag", "a,b").is(400, `Tag may not contain a ",".`),
		ask("admin", "POST vm-hosts/9/?op=add_tag", "tag", "big").is(404, noPod),
		ask("admin", "POST vm-hosts/7/?op=add_tag", "tag", "big").with("tags=[virtual big]"),
		ask("admin", "POST vm-hosts/7/?op=add_tag", "tag", "big").with("tags=[virtual big]"),
		ask("admin", "POST pods/7/?op=remove_tag", "tag", "big").with("tags=[virtual]"),
		ask("admin", "POST vm-hosts/7/?op=remove_tag", "tag", "big").with("tags=[virtual]"),
		ask("admin", "GET vm-hosts/7/?op=parameters").with("project=default", "power_address=lxd-1.lxd:8443"),
		ask("admin", "POST vm-hosts/7/?op=refresh").with("name=lxd-1", "tags=[virtual pod-console-logging]"),
		ask("admin", "POST vm-hosts/9/?op=refresh").is(404, noPod),
		ask("admin", "DELETE vm-hosts/7/?decompose=1").is(204, ""),
		ask("admin", "DELETE vm-hosts/7/").is(404, noPod),
		ask("admin", "GET vm-clusters/").is(200, "[]"),
		ask("admin", "GET vm-clusters/1/").is(404, "No VMCluster matches the given query."),
	)
}

// TestVMHostRights verifies that only administrators may change VM hosts, and that this is checked before the host is
// looked up.
func TestVMHostRights(t *testing.T) {
	site := simtest.New(t, simtest.WithVMHost)
	for _, request := range []string{
		"POST vm-hosts/", "PUT vm-hosts/7/", "DELETE vm-hosts/7/", "POST vm-hosts/7/?op=compose", "POST vm-hosts/7/?op=refresh",
		"POST vm-hosts/7/?op=add_tag", "POST vm-hosts/7/?op=remove_tag", "GET vm-hosts/7/?op=parameters", "POST vm-hosts/99/?op=compose",
	} {
		t.Run("When a plain user sends "+request+", it should be rejected", func(t *testing.T) {
			story(t, site, ask("alice", request).is(403, adminOnly))
		})
	}
}

func TestVMHostForms(t *testing.T) {
	tests := map[string]struct {
		request string
		form    []string
		code    int
		says    string
	}{
		"no type":                     {"POST vm-hosts/", []string{"power_address", "a"}, 400, `{"type": ["This field is required."]}`},
		"an unknown type":             {"POST vm-hosts/", []string{"type", "xen"}, 400, `{"type": ["Select a valid choice. xen is not one of the available choices."]}`},
		"no address":                  {"POST vm-hosts/", []string{"type", "lxd"}, 400, `{"power_address": ["This field is required."]}`},
		"the name of another host":    {"POST vm-hosts/", []string{"type", "lxd", "power_address", "b", "name", "lxd-1"}, 400, `{"name": ["Pod with this Name already exists."]}`},
		"the address of another host": {"POST vm-hosts/", []string{"type", "lxd", "power_address", "lxd-1.lxd:8443"}, 400, "Pod lxd-1 with type and parameters already exist."},
		"an unknown zone":             {"POST vm-hosts/", []string{"type", "lxd", "power_address", "b", "zone", "2"}, 400, `{"zone": [` + noChoice + `]}`},
		"an unknown pool":             {"PUT vm-hosts/7/", []string{"pool", "green"}, 400, `{"pool": [` + noChoice + `]}`},
		"a storage pool before the host is refreshed": {"POST vm-hosts/", []string{"type", "lxd", "power_address", "b", "default_storage_pool", "fast"}, 400, `{"default_storage_pool": [` + noChoice + `]}`},
		"an unknown storage pool":                     {"PUT vm-hosts/7/", []string{"default_storage_pool", "fast"}, 400, `{"default_storage_pool": [` + noChoice + `]}`},
		"a ratio above ten":                           {"PUT vm-hosts/7/", []string{"cpu_over_commit_ratio", "20"}, 400, `{"cpu_over_commit_ratio": ["Ensure this value is less than or equal to 10."]}`},
		"a ratio below zero":                          {"PUT vm-hosts/7/", []string{"memory_over_commit_ratio", "-1"}, 400, `{"memory_over_commit_ratio": ["Ensure this value is greater than or equal to 0."]}`},
		"a ratio that is not a number":                {"PUT vm-hosts/7/", []string{"memory_over_commit_ratio", "two"}, 400, `{"memory_over_commit_ratio": ["Enter a number."]}`},
		"an unknown macvlan mode":                     {"PUT vm-hosts/7/", []string{"default_macvlan_mode", "x"}, 400, `{"default_macvlan_mode": ["Select a valid choice. x is not one of the available choices."]}`},
		"another type":                                {"PUT vm-hosts/7/", []string{"type", "virsh"}, 400, `{"type": ["Cannot change the type of a pod. Delete and re-create the pod with a different type."]}`},
		"an unknown host":                             {"PUT vm-hosts/8/", nil, 404, noPod},
	}
	for name, test := range tests {
		t.Run("When a form has "+name+", it should be rejected", func(t *testing.T) {
			story(t, simtest.New(t, simtest.WithVMHost), ask("admin", test.request, test.form...).is(test.code, test.says))
		})
	}
	t.Run("When the forms are valid, they should change the host's fields", func(t *testing.T) {
		story(t, simtest.New(t, simtest.WithVMHost),
			ask("admin", "PUT vm-hosts/7/", "cpu_over_commit_ratio", "1.25", "zone", "south", "tags", "a, b").
				with("cpu_over_commit_ratio=1.25", "zone.name=south", "tags=[a b pod-console-logging]", "memory_over_commit_ratio=1"),
			ask("admin", "PUT vm-hosts/7/", "name", "renamed", "default_storage_pool", "default", "default_macvlan_mode", "bridge").
				with("name=renamed", "default_macvlan_mode=bridge", "zone.name=south"),
			ask("admin", "POST vm-hosts/", "type", "lxd", "name", "lxd-2", "power_address", "192.0.2.9", "zone", "north", "password", "secret").
				with("name=lxd-2", "zone.name=north", "total.cores=16", "host.system_id=<nil>"),
			ask("admin", "GET vm-hosts/8/?op=parameters").is(200, `{"certificate":"","key":"","power_address":"192.0.2.9","project":"default"}`),
			ask("admin", "POST vm-hosts/", "type", "virsh", "power_address", "qemu+ssh://x/system").with("type=virsh"),
		)
	})
}

func TestCompose(t *testing.T) {
	site := simtest.New(t, simtest.WithVMHost)
	compose := func(form ...string) step { return ask("admin", "POST vm-hosts/7/?op=compose", form...) }
	story(t, site,
		compose("hostname", "vm1", "cores", "4", "memory", "8192", "storage", "root:20,data:30", "zone", "3", "skip_commissioning", "true"),
		ask("admin", "GET machines/?pod=lxd-1").with("hostname=vm1", "status_name=Ready", "cpu_count=4", "zone.name=south", "pool.name=blue", "virtualmachine_id=1"),
		ask("admin", "GET vm-hosts/7/").with("used.cores=6", "used.memory=12288", "used.local_storage=6e+10"),
		ask("alice", "GET virtual-machines/").with("identifier=vm1", "project=default", "unpinned_cores=4"),
		ask("alice", "GET virtual-machines/1").with("memory=8192", "bmc_id=7"),
		ask("alice", "GET virtual-machines/2").is(404, "No VirtualMachine matches the given query."),
		ask("alice", "GET virtual-machines/x").is(500, ""),
		compose("hostname", "vm1").is(400, `{"hostname": ["Node with hostname \"vm1\" already exists"]}`),
		compose("hostname", "vm_1").is(400, `{"hostname": ["Label contains disallowed characters: 'vm_1'."]}`),
		compose("cores", "99", "memory", "1", "zone", "north", "pool", "7", "domain", "x").is(400, `{"cores": ["Ensure this value is less than or equal to 16."], `+
			`"domain": [`+noChoice+`], "memory": ["Ensure this value is greater than or equal to 1024."], "pool": [`+noChoice+`], "zone": [`+noChoice+`]}`),
		compose("cores", "0", "memory", "much", "cpu_speed", "10", "architecture", "s390x", "pinned_cores", "16").is(400,
			`{"architecture": ["Select a valid choice. s390x is not one of the available choices."], "cores": ["Ensure this value is greater than or equal to 1."], `+
				`"cpu_speed": ["Ensure this value is greater than or equal to 300."], "memory": ["Enter a whole number."], `+
				`"pinned_cores": ["Select a valid choice. 16 is not one of the available choices."]}`),
		compose("cores", "12").is(503, "Unable to compose KVM instance in 'lxd-1'. CPU overcommit ratio is 1.0 and there are 10 available resources; 12 requested."),
		compose("memory", "60000").is(503, "Unable to compose KVM instance in 'lxd-1'. Memory overcommit ratio is 1.0 and there are 53248 available resources; 60000 requested."),
		compose("storage", "900").is(500, "Not enough space in default storage pool: default"),
		compose("storage", "900(default)").is(500, "Not enough storage space on storage pools: default"),
		compose("storage", "root:8, data:5").is(400, `{"storage": ["Malformed storage constraint, \"root:8, data:5\"."]}`),
		compose("interfaces", "eth0").is(400, `{"interfaces": ["Malformed constraint: 'eth0' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')"]}`),
		compose("interfaces", "eth0:colour=1").is(400, `{"interfaces": ["Unknown interfaces constraint: 'colour"]}`),
		compose("interfaces", "eth0:subnet=1").is(400, "Pod must be on a known host if interfaces are specified."),
		ask("admin", "PUT vm-hosts/7/", "cpu_over_commit_ratio", "2"),
		compose("hostname", "vm2", "cores", "12.0", "hugepages_backed", "true"),
		ask("admin", "GET machines/?hostname=vm2").with("status_name=Commissioning", "power_type=lxd", "tag_names=[virtual pod-console-logging]"),
		ask("admin", "GET vm-hosts/7/").with("used.cores=18", "available.cores=-2"),
		compose("hostname", "vm3", "pinned_cores", "2", "pinned_cores", "5"),
		ask("admin", "GET machines/?hostname=vm3").with("cpu_count=2"),
		ask("alice", "GET virtual-machines/3").with("pinned_cores=[2 5]", "unpinned_cores=0"),
	)
	g := NewWithT(t)
	disks := site.Do("admin", "GET", "nodes/"+site.Has("vm1").SystemID+"/blockdevices/")
	g.Expect(disks.Each("storage_pool")).To(Equal([]string{"default", "default"}))
	pools := site.Do("admin", "GET", "vm-hosts/7/").Object()["storage_pools"].([]any)
	g.Expect(pools[0]).To(And(HaveKeyWithValue("used", 76e9), HaveKeyWithValue("available", 424e9)), "10 GB before, 20+30, 8, 8")
	site.Settle(time.Hour)
	story(t, site,
		ask("admin", "GET machines/?hostname=vm2").with("status_name=Ready", "power_state=off"),
		ask("admin", "DELETE machines/"+site.Has("vm2").SystemID+"/").is(204, ""),
		ask("admin", "GET vm-hosts/7/").with("used.cores=8"),
		ask("admin", "DELETE vm-hosts/7/").is(204, ""),
		ask("admin", "GET machines/").with("hostname=one two three four five"),
	)
}

// onHost returns a site like WithVMHost. The machine of its host is known, and the host has two storage pools.
func onHost(t *testing.T) *simtest.Site {
	site := simtest.New(t, simtest.WithVMHost)
	site.ChangeVMHost("lxd-1", func(h *inventory.VMHost) {
		h.HostSystemID = "aaaaa3"
		h.StoragePools = append(h.StoragePools, inventory.StoragePool{ID: "fast", Name: "fast", Total: 50e9})
	})
	return site
}

func TestComposeOnKnownHost(t *testing.T) {
	compose := func(form ...string) step { return ask("admin", "POST vm-hosts/7/?op=compose", form...) }
	tests := map[string]struct {
		interfaces string
		code       int
		says       string
	}{
		"a subnet of the host":                {"eth0:subnet=prod-net", 200, ""},
		"a network that the host is not on":   {"eth0:vlan=id:99", 400, "This pod does not match the specified networks."},
		"no network with DHCP":                {"eth0:subnet=storage-net", 400, "MAAS DHCP must be enabled on at least one VLAN attached to the specified interfaces."},
		"one network with DHCP among several": {"eth0:subnet=storage-net;eth1:subnet=prod-net", 200, ""},
		"an unknown space":                    {"eth0:space=none", 404, "No Space matches the given query."},
		"an invalid address":                  {"eth0:ip=ten", 500, "failed to detect a valid IP address from 'ten'"},
		"an address outside every subnet":     {"eth0:ip=192.0.2.1", 500, ""},
		"an address in use":                   {"eth0:ip=10.9.0.77", 404, "The IP address 10.9.0.77 is already in use."},
	}
	for name, test := range tests {
		t.Run("When the interfaces name "+name+", the response should be that of MAAS", func(t *testing.T) {
			site := onHost(t)
			story(t, site, ask("admin", "POST ipaddresses/?op=reserve", "ip", "10.9.0.77"))
			answer := site.Do("admin", "POST", "vm-hosts/7/?op=compose", "interfaces", test.interfaces)
			g := NewWithT(t)
			g.Expect(answer.Code).To(Equal(test.code), answer.Body)
			if test.says != "" {
				g.Expect(answer.Body).To(Equal(test.says))
			}
			if test.code != 200 {
				g.Expect(site.Machines()).To(HaveLen(5), "nothing is left of it")
			}
		})
	}
	t.Run("When an address is requested, the VM should have it, and the host should be its parent", func(t *testing.T) {
		g := NewWithT(t)
		site := onHost(t)
		story(t, site,
			compose("hostname", "vm", "interfaces", "net0:ip=10.9.0.60", "storage", "root:20(fast)", "skip_commissioning", "true"),
			ask("admin", "GET machines/?hostname=vm").with("ip_addresses=[10.9.0.60]", "parent.system_id=aaaaa3"),
			compose("storage", "40(fast)").is(500, "Not enough storage space on storage pools: fast"),
			compose("storage", "8,25(fast)"),
		)
		g.Expect(site.Has("vm").Interfaces[0].Name).To(Equal("net0"))
		pools := site.Do("admin", "GET", "vm-hosts/7/").Object()["storage_pools"].([]any)
		g.Expect(pools[1]).To(HaveKeyWithValue("used", 45e9))
	})
	t.Run("When a host cannot compose, it should return an error", func(t *testing.T) {
		site := simtest.New(t, simtest.WithVMHost)
		site.ChangeVMHost("lxd-1", func(h *inventory.VMHost) { h.Capabilities = nil })
		story(t, site, compose().is(400, "VM host does not support composability."))
	})
}

func TestVMHostTrouble(t *testing.T) {
	const unreachable = "Failed talking to pod: VM Host 7: Failed to connect to the LXD REST API."
	composed := func(t *testing.T) *simtest.Site {
		site := simtest.New(t, simtest.WithVMHost)
		story(t, site, ask("admin", "POST vm-hosts/7/?op=compose", "hostname", "vm", "skip_commissioning", "true"))
		story(t, site, ask("admin", "POST machines/"+site.Has("vm").SystemID+"/?op=deploy"))
		site.Settle(time.Hour)
		NewWithT(t).Expect(site.Has("vm").PowerState).To(Equal("on"))
		return site
	}
	t.Run("When a host is offline, it should not compose, and its VMs should have no power until it is back", func(t *testing.T) {
		site := composed(t)
		vm := "machines/" + site.Has("vm").SystemID + "/"
		site.ChangeVMHost("lxd-1", site.Life.LeaveVMHost)
		site.Settle(time.Minute)
		story(t, site,
			ask("admin", "POST vm-hosts/7/?op=compose").is(503, "Unable to compose machine because: "+unreachable),
			ask("admin", "POST vm-hosts/7/?op=refresh").is(503, unreachable),
			ask("admin", "PUT vm-hosts/7/", "zone", "south").with("zone.name=south"),
			ask("admin", "GET "+vm+"?op=query_power_state").is(503, ""),
			ask("admin", "GET "+vm).with("status_name=Deployed", "power_state=error"),
		)
		site.ChangeVMHost("lxd-1", site.Life.ReturnVMHost)
		site.Settle(time.Minute)
		story(t, site, ask("admin", "GET "+vm+"?op=query_power_state").with("state=on"))
	})
	t.Run("When the host goes offline while a VM is commissioned, the VM should fail commissioning", func(t *testing.T) {
		site := simtest.New(t, simtest.WithVMHost)
		story(t, site, ask("admin", "POST vm-hosts/7/?op=compose", "hostname", "vm"))
		site.ChangeVMHost("lxd-1", site.Life.LeaveVMHost)
		site.Settle(time.Hour)
		story(t, site, ask("admin", "GET machines/?hostname=vm").with("status_name=Failed commissioning"))
	})
	t.Run("When a VM is deleted in LXD, MAAS should list it until the host is refreshed", func(t *testing.T) {
		site := composed(t)
		vm := "machines/" + site.Has("vm").SystemID + "/"
		site.Change(site.Has("vm").SystemID, site.Life.LoseVM)
		site.Settle(time.Minute)
		story(t, site,
			ask("admin", "GET "+vm).with("status_name=Deployed", "power_state=error"),
			ask("admin", "POST vm-hosts/7/?op=refresh"),
			ask("admin", "GET "+vm).is(404, "No Machine matches the given query."),
		)
	})
	t.Run("When the host fails to compose, it should return a driver error once", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.WithVMHost)
		simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.ComposeFails, Machine: "lxd-1", Count: 1, Message: "no KVM"})
		simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.ComposeFails, Machine: "lxd-2"})
		story(t, site,
			ask("admin", "POST vm-hosts/7/?op=compose").is(503, "Unable to compose machine because: Failed talking to pod: no KVM"),
			ask("admin", "POST vm-hosts/7/?op=compose"),
		)
		g.Expect(site.Machines()).To(HaveLen(6))
	})
}

func TestRegisterVMHost(t *testing.T) {
	for _, parameter := range []string{"register_vmhost", "install_kvm"} {
		t.Run("When a machine is deployed with "+parameter+", it should become a VM host with its resources", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			story(t, site,
				ask("alice", "POST machines/aaaaa3/?op=deploy", parameter, "true").is(403, ""),
				ask("admin", "POST machines/aaaaa3/?op=deploy", parameter, "true").with("status_name=Deploying"),
				ask("admin", "GET vm-hosts/").is(200, "[]"),
			)
			site.Settle(time.Hour)
			story(t, site,
				ask("admin", "GET vm-hosts/").with("name=three", "host.system_id=aaaaa3", "zone.name=north", "pool.name=blue", "total.cores=8", "total.memory=16384"),
				ask("admin", "GET vm-hosts/1/?op=parameters").with("project=maas"),
				ask("admin", "POST vm-hosts/1/?op=compose", "hostname", "vm", "skip_commissioning", "true"),
				ask("admin", "GET machines/?hostname=vm").with("parent.system_id=aaaaa3"),
				ask("admin", "GET machines/?agent_name=maas-kvm-pod").with("hostname=three"),
				ask("admin", "POST machines/aaaaa3/?op=release").is(400, "The following VM hosts must be removed first: three"),
			)
			story(t, site, ask("admin", "POST machines/"+site.Has("vm").SystemID+"/?op=deploy"))
			site.Settle(time.Hour)
			story(t, site, ask("admin", "POST machines/aaaaa3/?op=power_off"))
			site.Settle(time.Minute)
			g.Expect(site.Has("vm").PowerState).To(Equal("error"), "a host takes its VMs' power with it")
			story(t, site, ask("admin", "POST machines/aaaaa3/?op=power_on"))
			site.Settle(time.Minute)
			g.Expect(site.Has("vm").PowerState).To(Equal("on"))
			story(t, site,
				ask("admin", "POST machines/aaaaa3/?op=release", "force", "true").with("status_name=Releasing"),
				ask("admin", "GET vm-hosts/").is(200, "[]"),
				ask("admin", "GET machines/?hostname=vm").is(200, "[]"),
			)
		})
	}
	t.Run("When a VM host of that name exists, the deployment should fail", func(t *testing.T) {
		site := simtest.New(t, simtest.WithVMHost)
		site.ChangeVMHost("lxd-1", func(h *inventory.VMHost) { h.Name = "three" })
		story(t, site, ask("admin", "POST machines/aaaaa3/?op=deploy", "register_vmhost", "true"))
		site.Settle(time.Hour)
		story(t, site, ask("admin", "GET machines/aaaaa3/").with("status_name=Failed deployment"))
	})
}

func TestComposeOnAllocate(t *testing.T) {
	t.Run("When no machine fits, a VM host should compose one that is deleted on release", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.WithVMHost)
		answer := site.Do("alice", "POST", "machines/?op=allocate", "name", "wanted", "pool", "default", "cpu_count", "3", "mem", "3000")
		g.Expect(answer.Code).To(Equal(200), answer.Body)
		vm := answer.Object()
		g.Expect(vm).To(And(HaveKeyWithValue("cpu_count", 3.0), HaveKeyWithValue("memory", 3000.0), HaveKeyWithValue("status_name", "Allocated")))
		g.Expect(vm["hostname"]).NotTo(Equal("wanted"))
		g.Expect(vm["zone"]).To(HaveKeyWithValue("name", "default"))
		g.Expect(vm["pool"]).To(HaveKeyWithValue("name", "blue"))
		g.Expect(vm["pod"]).To(HaveKeyWithValue("name", "lxd-1"))
		id := vm["system_id"].(string)
		story(t, site,
			ask("alice", "POST machines/"+id+"/?op=release"),
			ask("alice", "GET machines/"+id+"/").is(404, "No Machine matches the given query."),
		)
	})
	refused := map[string][]string{
		"a system ID":                               {"system_id", "zzzzzz"},
		"tags that the host lacks":                  {"tags", "gpu", "zone", "default"},
		"tags in one text, which no host has":       {"tags", "fast,gpu", "mem", "999999"},
		"more memory than a host has":               {"mem", "999999"},
		"less memory than a VM has":                 {"mem", "512", "name", "x"},
		"a zone without a host":                     {"zone", "south", "mem", "300000"},
		"another host's name":                       {"pod", "lxd-9", "name", "x"},
		"any host but this one":                     {"not_pod", "lxd-1", "name", "x"},
		"no LXD host":                               {"not_pod_type", "lxd", "name", "x"},
		"an architecture without a subarchitecture": {"arch", "amd64", "name", "x"},
		"networks of a host of unknown machine":     {"interfaces", "a:subnet=1", "name", "x"},
	}
	for name, form := range refused {
		t.Run("When the request has "+name+", no VM should be composed", func(t *testing.T) {
			site := simtest.New(t, simtest.WithVMHost)
			story(t, site, ask("alice", "POST machines/?op=allocate", form...).is(409, ""))
			NewWithT(t).Expect(site.Machines()).To(HaveLen(5))
		})
	}
	t.Run("When the request is a dry run, it should leave a Ready VM, as in MAAS", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.WithVMHost)
		story(t, site, ask("alice", "POST machines/?op=allocate", "name", "x", "dry_run", "1").with("status_name=Ready"))
		g.Expect(site.Machines()).To(HaveLen(6))
	})
	t.Run("When the version is main, there should be no VM hosts to compose on", func(t *testing.T) {
		site := simtest.New(t, simtest.WithVMHost, func(o *simulator.Options) { o.Version = "main" })
		story(t, site,
			ask("alice", "POST machines/?op=allocate", "name", "x").is(409, ""),
			ask("alice", "GET virtual-machines/").is(410, ""),
		)
	})
}
