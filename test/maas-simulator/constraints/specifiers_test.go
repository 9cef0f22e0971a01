// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// TestSpecifierKinds verifies that the kind before the colon determines how the rest is read. A name is not read as a
// number, nor a number as a name.
func TestSpecifierKinds(t *testing.T) {
	const noVLAN, noSubnet = `400 {"vlans": ["No matching VLANs found."]}`, `400 {"subnets": ["No matching subnets found."]}`
	for query, want := range map[string]string{
		"fabrics=fabric:f0": "a", "fabrics=name:f1": "b d", "fabrics=1": "b d", "fabrics=id:f1": `400 {"fabrics": ["No matching fabrics found."]}`,
		"fabric_classes=q": "", "not_fabric_classes=q": "a b c d",

		"vlans=id:2": "b d", "vlans=id:v2": noVLAN, "vlans=name:2": noVLAN, "vlans=vid:v2": noVLAN, "vlans=vid:2": noVLAN, "vlans=id:40": noVLAN,
		"vlans=v1": "a", "vlans=fabric:q": "404 No Fabric matches the given query.", "vlans=space:1": "a", "vlans=space:9": "404 No Space matches the given query.",

		"subnets=id:2": "b", "subnets=id:n2": noSubnet, "subnets=name:n1": "a", "subnets=name:1": noSubnet, "subnets=10.1.0.0/24": "a",
		"subnets=cidr:n1": noSubnet, "subnets=ip:10.1.1.1": noSubnet, "subnets=ip:here": noSubnet, "subnets=colour:n1": noSubnet,
		"subnets=space:1": "a", "subnets=fabric:f1": "b d", "subnets=vlan:40": "404 No VLAN matches the given query.",
		"subnets=vid:40": "b d", "subnets=vid:2": noSubnet,

		"interfaces=l:fabric=0": "a", "interfaces=l:vid=2": "", "interfaces=l:not_vid=40": "a", "interfaces=l:subnet=id:2": "b",
		"interfaces=l:mode=DHCP": "b", "interfaces=l:ip=10.1.0.8": "", "interfaces=l:id=99": "", "interfaces=l:not_tag=x": "b d",
		"interfaces=l:tag=x;m:tag=y": "", "interfaces=l:name=eth0;m:subnet=n2": "b",
	} {
		t.Run("When the query is "+query+", only the named machines should match", func(t *testing.T) {
			NewWithT(t).Expect(choose(t, constraints.Filter, query)).To(Equal(want))
		})
	}
}

// TestIPv6Specifiers verifies that a colon in an IPv6 address is not read as the end of a kind.
func TestIPv6Specifiers(t *testing.T) {
	db := inventory.NewDB(1)
	if err := db.Load([]byte(`{"subnets": [{"id": 1, "cidr": "fd00:1::/64"}, {"id": 2, "name": "six", "cidr": "fd00:2::/64"}]}`), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]int{
		"fd00:1::/64": 1, "cidr:fd00:2::/64": 2, "ip:fd00:2::9": 2, "ip:fd00:1:0:1::": 0, "name:six": 2, "fd00:9::/64": 0, "cidr:fd00:9::/64": 0,
	} {
		t.Run("When the specifier is "+spec+", it should match the subnet that it names", func(t *testing.T) {
			got := 0
			if s := constraints.SubnetBySpec(db, spec); s != nil {
				got = s.ID
			}
			NewWithT(t).Expect(got).To(Equal(want))
		})
	}
}

func TestChoices(t *testing.T) {
	const choice = "is not one of the available choices."
	for query, want := range map[string]string{
		"not_system_id=a&not_system_id=d": "b c", "system_id=a&system_id=c": "a c",
		"power_state=error": "d", "power_state=unknown": "", "not_power_state=error&not_power_state=on": "b c",
		"deployment_target=disk": "a b c", "deployment_target=tape": `400 {"deployment_target": ["Select a valid choice. tape ` + choice + `"]}`,
		"simple_status=ready": "a", "simple_status=other": "", "simple_status=deployed&simple_status=broken": "b d",
		"simple_status=q": `400 {"simple_status": ["Select a valid choice. q ` + choice + `"]}`,
		"link_speed=1":    "a b d", "link_speed=1000": "a b d", "link_speed=1001": "a", "link_speed=10000": "a", "link_speed=10001": "",
		"mac_address=02:00:5e:10:00:00:00:01":       `400 {"mac_address": ["'02:00:5e:10:00:00:00:01' is not a valid MAC address."]}`,
		"mac_address=52:54:00:00:00:0a&mac_address": "a",
		"tags=r&tags=q,r":                           `400 {"tags": ["No such tag(s): 'q', 'r'."]}`, "tags=,": "a b c d",
		"zone=q&zone=r&zone=z2": `400 {"zone": ["No such zone(s): q, r."]}`,
		"arch=arm64/ga-22.04":   "", "arch=amd64/ga-99.04": `400 {"arch": ["Architecture not recognised."]}`,
		"arch=arm":          `400 {"arch": ["Architecture not recognised."]}`,
		"cpu_count=%204%20": "b c d", "mem=inf": "", "mem=-1": "a b c d", "cpu_count=8": "c d", "cpu_count=8.01": "",
		"devices=vendor_id=10de,product_id=1": "a", "devices=colour=red": "", "agent_name=me&agent_name=you": "c",
		"storage=10": "a", "storage=10.1": "", "storage=5,50,90": "a", "storage=5,50,90,1": "", "storage=5,x:50(ssd)": "",
		"interfaces=:tag=x":      `400 {"interfaces": ["Malformed constraint: ':tag=x' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')"]}`,
		"interfaces=l:tag":       `400 {"interfaces": ["Malformed constraint: 'l:tag' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')"]}`,
		"interfaces=l:tag=x;bad": `400 {"interfaces": ["Malformed constraint: 'bad' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')"]}`,
		"interfaces=l:not_q=1":   `400 {"interfaces": ["Unknown interfaces constraint: 'not_q"]}`,
		"not_interfaces=l:tag=x": `400 {"not_interfaces": ["No such constraint."]}`, "q=": `400 {"q": ["No such constraint."]}`,
	} {
		t.Run("When the query is "+query+", the machines or the error should be those of MAAS", func(t *testing.T) {
			NewWithT(t).Expect(choose(t, constraints.Filter, query)).To(Equal(want))
		})
	}
}

// TestParametersThatChooseNothing verifies that parameters of allocate that are not constraints are neither rejected
// nor listed as constraints.
func TestParametersThatChooseNothing(t *testing.T) {
	const query = "op=allocate&agent_name=x&comment=y&bridge_all=1&bridge_type=ovs&bridge_stp=1&bridge_fd=3&dry_run=1&verbose=1&" +
		"install_kvm=1&install_rackd=1&register_vmhost=1&ephemeral_deploy=1&enable_hw_sync=1"
	g := NewWithT(t)
	g.Expect(choose(t, constraints.Acquire, query)).To(Equal("a b c d"))
	g.Expect(choose(t, constraints.Filter, "comment=y")).To(Equal(`400 {"comment": ["No such constraint."]}`), "a list has no comment")
}

// acquired parses a query as allocate does.
func acquired(t *testing.T, db *inventory.DB, query string, see func(*constraints.Set)) {
	t.Helper()
	values, err := form.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.View(func() error {
		set, err := constraints.Acquire(db, values)
		if err == nil {
			see(set)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestResolved verifies that an error message lists the constraints as MAAS parsed them, sorted by name.
func TestResolved(t *testing.T) {
	for query, want := range map[string]string{
		"zone=z2&zone=default":                    "zone=z2,default",
		"pool=p1&pool=default&not_in_zone=z2":     "not_in_zone=z2 pool=p1,default",
		"owner=ann&owner=idle":                    "owner=ann,idle",
		"power_state=on&power_state=off":          "power_state=on,off",
		"deployment_target=disk":                  "deployment_target=disk",
		"subnets=n1&subnets=n2&vlans=v1":          "subnets=n1,n2 vlans=v1",
		"cpu_count=4&cpu_speed=2.5&mem=100":       "cpu_count=4.0 cpu_speed=2.5 mem=100.0",
		"system_id=a":                             "system_id=a",
		"not_tags=t2,t1&arch=amd64":               "arch=amd64 not_tags=t2,t1",
		"storage=root:5(ssd)&interfaces=l:tag=x":  "interfaces=l:tag=x storage=root:5(ssd)",
		"devices=vendor_id=10de":                  "devices=vendor_id=10de",
		"zone=&pool=":                             "",
		"not_pod=kvm&not_pod_type=virsh&name=a.b": "name=a.b not_pod=kvm not_pod_type=virsh",
	} {
		t.Run("When "+query+" is requested, the resolved constraints should be those of MAAS", func(t *testing.T) {
			acquired(t, open(t), query, func(s *constraints.Set) { NewWithT(t).Expect(s.Resolved()).To(Equal(want)) })
		})
	}
}

func TestAsked(t *testing.T) {
	for value, want := range map[string]string{
		"a\rb\tc": `'a\rb\tc'`, `it's "x"`: `'it\'s "x"'`, `"`: `'"'`, `\'`: `"\\'"`, "": "''",
	} {
		NewWithT(t).Expect(constraints.Asked(form.Values{{Key: "name", Value: value}})).To(Equal("[('name', [" + want + "])]"))
	}
}

// TestByIdentity verifies SystemID: for a request by system ID, allocate responds differently and composes nothing.
func TestByIdentity(t *testing.T) {
	for query, want := range map[string]string{"": "", "name=a": "", "system_id=a": "a", "system_id=a&system_id=b": "b"} {
		acquired(t, open(t), query, func(s *constraints.Set) { NewWithT(t).Expect(s.SystemID).To(Equal(want), query) })
	}
}

const disks = `{"machines": [{"system_id": "m", "physicalblockdevice_set": [
  {"id": 1, "size": 10000000000}, {"id": 2, "size": 50000000000}, {"id": 3, "size": 90000000000}, {"id": 4, "size": 50000000000, "tags": ["ssd"]}],
 "interface_set": [{"id": 12, "name": "eth0", "tags": ["x"]}, {"id": 11, "name": "eth1", "tags": ["x"]}]}]}`

// TestWhatWasChosen verifies that the response maps labels to the disks and interfaces that satisfy them.
func TestWhatWasChosen(t *testing.T) {
	type labels = map[string][]int
	none := map[string]any{}
	of := func(l labels) map[string]any { return map[string]any{"m": l} }
	tests := map[string]struct {
		query string
		want  map[string]any
	}{
		"the smallest disk that fits": {"storage=r:5,d:40", map[string]any{
			"storage": labels{"r": {1}, "d": {2}}, "verbose_storage": of(labels{"r": {1}, "d": {2}}), "verbose_interfaces": none}},
		"two equal disks": {"storage=5,a:40,b:40", map[string]any{
			"storage": labels{"a": {2}, "b": {4}}, "verbose_storage": of(labels{"a": {2}, "b": {4}}), "verbose_interfaces": none}},
		"a disk with a tag": {"storage=r:5,d:40(ssd)", map[string]any{
			"storage": labels{"r": {1}, "d": {4}}, "verbose_storage": of(labels{"r": {1}, "d": {4}}), "verbose_interfaces": none}},
		"the root disk alone": {"storage=r:1", map[string]any{
			"storage": labels{"r": {1}}, "verbose_storage": of(labels{"r": {1}}), "verbose_interfaces": none}},
		"two disks with one label": {"storage=d:5,d:60", map[string]any{
			"storage": labels{"d": {1, 3}}, "verbose_storage": of(labels{"d": {1, 3}}), "verbose_interfaces": none}},
		"every interface by number": {"interfaces=l:tag=x", map[string]any{
			"interfaces": labels{"l": {11, 12}}, "verbose_storage": none, "verbose_interfaces": of(labels{"l": {11, 12}})}},
		"nothing with a label": {"storage=5", map[string]any{"verbose_storage": none, "verbose_interfaces": none}},
	}
	for name, test := range tests {
		t.Run("When "+name+" is selected, the response should name it", func(t *testing.T) {
			db := inventory.NewDB(1)
			if err := db.Load([]byte(disks), time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			acquired(t, db, test.query, func(s *constraints.Set) {
				m := db.Machines.Get("m")
				NewWithT(t).Expect(s.Fits(m)).To(BeTrue())
				if diff := cmp.Diff(test.want, s.Matched(m, true)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
