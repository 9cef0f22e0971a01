// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

const create = "POST machines/"

// newMachine returns a form that creates a machine. The pairs replace or add parameters.
func newMachine(pairs ...string) []string {
	values := map[string]string{"architecture": "amd64/generic", "mac_addresses": "52:54:00:00:09:01", "hostname": "fresh", "power_type": "manual"}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	var form []string
	for key, value := range values {
		if value != "" {
			form = append(form, key, value)
		}
	}
	return form
}

func TestCreateForms(t *testing.T) {
	const choice = `["Select a valid choice. That choice is not one of the available choices."]`
	tests := map[string]struct {
		form  []string
		says  string // empty if the machine is created
		shows []string
	}{
		"a domain in its name":             {[]string{"hostname", "fresh.lab.example"}, "", []string{"fqdn=fresh.lab.example"}},
		"an unknown domain in its name":    {[]string{"hostname", "fresh.nowhere"}, `{"hostname": ["Nonexistant domain."]}`, nil},
		"a domain parameter":               {[]string{"domain", "lab.example"}, "", []string{"fqdn=fresh.lab.example"}},
		"a domain by ID":                   {[]string{"domain", "1"}, `{"domain": ` + choice + `}`, nil},
		"a zone and a pool":                {[]string{"zone", "north", "pool", "blue"}, "", []string{"zone.name=north", "pool.name=blue"}},
		"an unknown pool":                  {[]string{"pool", "green"}, `{"pool": ` + choice + `}`, nil},
		"an unknown zone":                  {[]string{"zone", "2"}, `{"zone": ` + choice + `}`, nil},
		"a name that is taken":             {[]string{"hostname", "one"}, `{"hostname": ["Node with hostname 'one' already exists"]}`, nil},
		"a name of 63 characters":          {[]string{"hostname", letters(63)}, "", []string{"hostname=" + letters(63)}},
		"a name of 64 characters":          {[]string{"hostname", letters(64)}, `{"hostname": ["Label contains disallowed characters: '` + letters(64) + `'."]}`, nil},
		"a name that ends with a hyphen":   {[]string{"hostname", "a-"}, `{"hostname": ["Label contains disallowed characters: 'a-'."]}`, nil},
		"a name that begins with a hyphen": {[]string{"hostname", "-a"}, `{"hostname": ["Label contains disallowed characters: '-a'."]}`, nil},
		"half an architecture":             {[]string{"architecture", "amd64"}, "", []string{"architecture=amd64/generic"}},
		"a separate subarchitecture":       {[]string{"architecture", "amd64", "subarchitecture", "generic"}, "", []string{"architecture=amd64/generic"}},
		"another half of one": {[]string{"architecture", "amd64", "subarchitecture", "xgene"},
			`{"architecture": ["'amd64/xgene' is not a valid architecture.  It should be one of: '', 'amd64/generic'."]}`, nil},
		"a MAC address that is too long": {[]string{"mac_addresses", "02:00:5e:10:00:00:00:01"},
			`{"mac_addresses": ["One or more MAC addresses is invalid. ('02:00:5e:10:00:00:00:01' is not a valid MAC address.)"]}`, nil},
		"a MAC address in upper case": {[]string{"mac_addresses", "52:54:00:00:0A:0B"}, "", []string{"boot_interface.mac_address=52:54:00:00:0a:0b"}},
		"a MAC address that is taken": {[]string{"mac_addresses", "52:54:00:00:00:13"},
			`{"mac_addresses": ["MAC address 52:54:00:00:00:13 already in use on three."]}`, nil},
		"no MAC address":                   {[]string{"mac_addresses", ""}, `{"mac_addresses": ["This field is required."]}`, nil},
		"a BMC that knows the MAC address": {[]string{"mac_addresses", "", "power_type", "redfish"}, "", []string{"interface_set=[]", "status_name=Commissioning"}},
		"manual power":                     {[]string{"power_type", "manual"}, "", []string{"status_name=New", "power_state=unknown"}},
		"no power type":                    {[]string{"power_type", ""}, "", []string{"status_name=New", "owner=<nil>"}},
		"commissioning turned off":         {[]string{"power_type", "ipmi", "commission", "false"}, "", []string{"status_name=New"}},
		"a system that already runs":       {[]string{"deployed", "true", "commission", "true"}, "", []string{"status_name=Deployed", "owner=admin"}},
		"a description and no memory":      {[]string{"description", "d"}, "", []string{"description=d", "memory=0", "cpu_count=0", "domain.name=maas"}},
	}
	for name, test := range tests {
		t.Run("When a new machine has "+name+", it should be created or rejected as by MAAS", func(t *testing.T) {
			site := simtest.New(t, simtest.Rack)
			if test.says != "" {
				story(t, site, ask("admin", create, newMachine(test.form...)...).is(400, test.says))
				NewWithT(t).Expect(site.Machines()).To(HaveLen(5))
				return
			}
			story(t, site, ask("admin", create, newMachine(test.form...)...).with(test.shows...))
		})
	}
}

// TestPowerTypes verifies the power types that need no MAC addresses, because their drivers find them, and that every
// power type of MAAS is accepted.
func TestPowerTypes(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	for _, kind := range []string{"ipmi", "lxd", "redfish"} {
		story(t, site, ask("admin", create, newMachine("hostname", "by-"+kind, "mac_addresses", "", "power_type", kind, "commission", "false")...).with("power_type="+kind))
	}
	for _, kind := range []string{
		"amt", "apc", "dli", "eaton", "hmc", "hmcz", "ipmi", "lxd", "manual", "moonshot", "mscm", "msftocs", "nova", "openbmc", "proxmox", "raritan", "recs_box",
		"redfish", "sm15k", "ucsm", "virsh", "vmware", "webhook", "wedge", "",
	} {
		story(t, site, ask("admin", "PUT machines/aaaaa1/", "power_type", kind).with("power_type="+kind))
	}
}

func letters(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = 'a'
	}
	return string(out)
}

// TestPowerParameters verifies that power parameters may be JSON or separate keys, and that only administrators can
// read them. They are generated if the seed has none.
func TestPowerParameters(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa2", func(m *inventory.Machine) { m.PowerType = "lxd" })
	site.Change("aaaaa3", func(m *inventory.Machine) { m.PowerType = "redfish" })
	story(t, site,
		ask("admin", create, newMachine("power_type", "ipmi", "power_parameters", `{"power_address": "192.0.2.7", "power_user": "root"}`,
			"power_parameters_power_user", "maas", "power_parameters_skip_check", "true", "commission", "false")...),
		ask("admin", "GET machines/?op=power_parameters&id=aaaaa2&id=aaaaa3").with("aaaaa2.instance_name=two", "aaaaa2.project=default",
			"aaaaa3.power_address=aaaaa3.bmc", "aaaaa3.power_user=maas", "aaaaa1=<nil>"),
		ask("admin", "GET machines/aaaaa2/?op=power_parameters").is(200, `{"certificate":"","instance_name":"two","key":"","power_address":"https://lxd","project":"default"}`),
		ask("admin", "GET nodes/aaaaa1/?op=power_parameters").with("power_driver=LAN_2_0", "power_address=aaaaa1.bmc"),
		ask("admin", "PUT machines/aaaaa1/", "power_parameters_power_user", "root").with("power_type=ipmi"),
		ask("admin", "GET machines/aaaaa1/?op=power_parameters").is(200, `{"power_user":"root"}`),
		ask("admin", "PUT machines/aaaaa1/", "power_parameters", `{"power_address": "192.0.2.8"}`),
		ask("admin", "GET machines/aaaaa1/?op=power_parameters").is(200, `{"power_address":"192.0.2.8","power_user":"root"}`),
		ask("admin", "PUT machines/aaaaa1/", "power_parameters", `[`).is(400, `{"power_parameters": ["Failed to parse JSON power_parameters"]}`),
		ask("admin", "PUT machines/aaaaa1/", "power_type", ""),
		ask("admin", "POST machines/aaaaa1/?op=commission").is(400, `{"__all__": ["Commission is not available because of the current state of the node."]}`),
	)
	fresh := site.Has("fresh").SystemID
	story(t, site, ask("admin", "GET machines/"+fresh+"/?op=power_parameters").is(200, `{"power_address":"192.0.2.7","power_user":"maas"}`))
}

func TestUpdateMachines(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("admin", "PUT machines/aaaaa1/", "architecture", "amd64", "min_hwe_kernel", "ga-22.04", "disable_ipv4", "true", "swap_size", "1024", "memory", "0",
			"domain", "lab.example", "description", "x").
			with("architecture=amd64/generic", "min_hwe_kernel=ga-22.04", "disable_ipv4=true", "swap_size=1024", "memory=0", "fqdn=one.lab.example"),
		ask("admin", "PUT machines/aaaaa1/", "hostname", "one").with("hostname=one", "description=x", "swap_size=1024"),
		ask("admin", "PUT machines/aaaaa1/", "description", "", "swap_size", "").with("description=", "swap_size=1024"),
		ask("admin", "PUT machines/aaaaa1/", "hostname", "uno.maas").with("fqdn=uno.maas"),
	)
	before := site.Has("uno")
	story(t, site,
		ask("admin", "PUT machines/aaaaa1/", "description", "lost", "hostname", "lost", "architecture", "vax/generic", "swap_size", "1.5").is(400,
			`{"architecture": ["'vax/generic' is not a valid architecture.  It should be one of: '', 'amd64/generic'."], "swap_size": ["Enter a whole number."]}`),
		ask("admin", "PUT machines/aaaaa1/", "zone", "north", "swap_size", "-1").is(400, `{"swap_size": ["Ensure this value is greater than or equal to 0."]}`),
	)
	g.Expect(cmp.Diff(before, site.Has("uno"))).To(BeEmpty(), "a form is taken as a whole or not at all")
}

// TestAnnotations verifies that annotations are set by key and belong to one owner.
func TestAnnotations(t *testing.T) {
	const annotate = "POST machines/aaaaa1/?op=set_workload_annotations"
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.Annotations = status.Allocated, "alice", nil })
	story(t, site,
		ask("alice", annotate, "a", "1", "b.c-d_e", "2").with("workload_annotations=map[a:1 b.c-d_e:2]", "owner_data=map[a:1 b.c-d_e:2]"),
		ask("alice", annotate, "a", "3").with("workload_annotations=map[a:3 b.c-d_e:2]"),
		ask("alice", annotate, "a", "", "none", "").with("workload_annotations=map[b.c-d_e:2]"),
		ask("alice", annotate, "ok", "1", "no/slash", "2").is(500, "Invalid character in key name"),
		ask("alice", annotate, letters(64), "1"),
		ask("alice", annotate, letters(65), "1").is(500, "Invalid character in key name"),
		ask("alice", annotate, letters(64), ""),
		ask("alice", "GET machines/aaaaa1/").with("workload_annotations=map[b.c-d_e:2]"),
		ask("admin", "POST machines/aaaaa1/?op=set_owner_data", "x", "y").with("workload_annotations=map[b.c-d_e:2 x:y]"),
	)
}

// TestIsRegistered verifies the check for a known MAC address before an enlistment. A retired machine may be enlisted
// again.
func TestIsRegistered(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa2", func(m *inventory.Machine) { m.Status = status.Retired })
	story(t, site,
		ask("", "GET machines/?op=is_registered").is(400, "No provided mac_address!"),
		ask("", "GET machines/?op=is_registered&mac_address=52:54:00:00:00:0D").is(200, "false"),
		ask("", "GET nodes/?op=is_registered&mac_address=52:54:00:00:00:13").is(200, "true"),
		ask("", "GET machines/?op=is_registered&mac_address=52:54:00:00:00:02").is(200, "false"),
		ask("admin", create, newMachine("mac_addresses", "52:54:00:00:0A:0B")...),
		ask("", "GET machines/?op=is_registered&mac_address=52:54:00:00:0A:0b").is(200, "true"),
	)
}

// TestAccept verifies that machines of anonymous enlistments wait for an administrator.
func TestAccept(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	for _, id := range []string{"aaaaa1", "aaaaa2"} {
		site.Change(id, func(m *inventory.Machine) { m.Status = status.New })
	}
	story(t, site,
		ask("alice", "POST machines/?op=accept_all").is(403, "You don't have the required permission to accept the following machine(s): aaaaa1."),
		ask("admin", "POST machines/?op=accept", "machines", "aaaaa3").is(200, "[]"),
		ask("admin", "POST machines/?op=accept", "machines", "aaaaa2", "machines", "aaaaa3").with("hostname=two", "status_name=Commissioning"),
		ask("admin", "POST machines/?op=accept_all").with("hostname=one"),
		ask("admin", "POST machines/?op=accept_all").is(200, "[]"),
	)
	site.Settle(time.Hour)
	g.Expect(site.Has("one").Status).To(Equal(status.Ready))
	g.Expect(site.Has("three").Status).To(Equal(status.Ready))
}

func TestZonesOfSeveralMachines(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("admin", "POST machines/?op=set_zone", "nodes", "aaaaa1", "zone", "nowhere").is(400, `{"zone": [`+noChoice+`]}`),
		ask("admin", "POST nodes/?op=set_zone", "nodes", "aaaaa1", "nodes", "zzzzzz", "nodes", "aaaaa4", "zone", "north").is(200, "null"),
		ask("alice", "GET machines/?zone=north").with("hostname=one two three four"),
	)
}

// TestBulkReleaseByVersion verifies that no machine changes if one power controller fails. It uses version 3.5, which
// reports this failure in the response.
func TestBulkReleaseByVersion(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.Version = "3.5" })
	for _, id := range []string{"aaaaa1", "aaaaa2"} {
		site.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "alice", "on" })
	}
	simtest.Fault(t, site.Simulator, noPower("two"))
	story(t, site,
		ask("alice", "POST machines/?op=release", "machines", "aaaaa1", "machines", "aaaaa2").is(500, "Failed to power off node - no route"),
		ask("alice", "GET machines/?owner=alice").with("status_name=Deployed Deployed"),
		ask("alice", "POST machines/?op=release", "machines", "aaaaa1", "machines", "aaaaa1", "comment", "bye").is(200, `["aaaaa1"]`),
	)
	g.Expect(site.Has("two").Task).To(BeNil())
}

func TestStorageLayouts(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	const layout = "POST machines/aaaaa1/?op=set_storage_layout"
	story(t, site,
		ask("admin", layout).is(400, `{"storage_layout": ["This field is required."]}`),
		ask("admin", layout, "storage_layout", "zfs").is(400, `{"storage_layout": ["'zfs' is not a valid storage layout.  It should be one of: `+
			`\"flat\", \"lvm\", \"bcache\", \"vmfs6\", \"vmfs7\", \"blank\", \"custom\"."]}`),
		ask("admin", layout, "storage_layout", "blank").with("status_name=Ready"),
	)
	site.Change("aaaaa1", func(m *inventory.Machine) { m.Status = status.Deploying })
	story(t, site,
		ask("admin", layout, "storage_layout", "flat").is(409, "Cannot change the storage layout on a machine that is not Ready or Allocated."),
		ask("admin", "POST machines/aaaaa1/?op=restore_storage_configuration").is(409, "Machine must be in a ready state to restore storage."),
		ask("admin", "POST machines/aaaaa1/?op=restore_networking_configuration").is(409, "Machine must be in a ready state to restore networking."),
	)
}
