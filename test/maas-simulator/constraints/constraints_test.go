// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// lab is the seed of a site with four machines. "b" is a VM on host kvm; "d" runs from memory.
const lab = `{
 "zones": [{"id": 1, "name": "default"}, {"id": 2, "name": "z2"}], "resourcepools": [{"id": 0, "name": "default"}, {"id": 1, "name": "p1"}],
 "tags": [{"name": "t1"}, {"name": "t2"}], "domains": [{"id": 0, "name": "maas", "is_default": true}, {"id": 1, "name": "other.example"}],
 "spaces": [{"id": 1, "name": "s1"}],
 "fabrics": [{"id": 0, "name": "f0", "class_type": "10g", "vlans": [{"id": 1, "vid": 0, "name": "v1", "fabric_id": 0, "space": "s1"}]},
             {"id": 1, "name": "f1", "vlans": [{"id": 2, "vid": 40, "name": "v2", "fabric_id": 1}]}],
 "subnets": [{"id": 1, "name": "n1", "cidr": "10.1.0.0/24", "vlan": {"id": 1}}, {"id": 2, "name": "n2", "cidr": "10.2.0.0/24", "vlan": {"id": 2}}],
 "boot_resources": [{"name": "ubuntu/jammy", "architecture": "amd64/ga-22.04"}, {"name": "ubuntu/jammy", "architecture": "arm64/ga-22.04"}],
 "vm_hosts": [{"id": 5, "name": "kvm", "type": "virsh"}], "users": [{"username": "ann"}, {"username": "idle"}],
 "machines": [
  {"system_id": "a", "hostname": "a", "cpu_count": 2, "cpu_speed": 2000, "memory": 2048, "zone": "default", "tag_names": ["t1"], "power_state": "on", "owner": "ann",
   "interface_set": [{"id": 11, "name": "eth0", "mac_address": "52:54:00:00:00:0A", "tags": ["x"], "link_speed": 10000, "links": [{"mode": "static", "subnet": 1, "ip_address": "10.1.0.7"}]}],
   "physicalblockdevice_set": [{"id": 21, "name": "sda", "size": 10000000000, "tags": ["ssd"]}, {"id": 22, "name": "sdb", "size": 90000000000}, {"id": 23, "name": "sdc", "size": 50000000000}],
   "devices": [{"vendor_id": "10de", "product_id": "1"}]},
  {"system_id": "b", "hostname": "b", "cpu_count": 4, "cpu_speed": 3000, "memory": 4096, "zone": "z2", "pool": "p1", "pod": {"id": 5}, "tag_names": ["t1", "t2"], "domain": "other.example",
   "interface_set": [{"id": 12, "name": "eth0", "mac_address": "52:54:00:00:00:0B", "links": [{"mode": "dhcp", "subnet": 2}]}], "status": 6},
  {"system_id": "c", "hostname": "c", "architecture": "arm64/generic", "cpu_count": 8, "memory": 8192, "zone": "z2", "status": 11, "agent_name": "me"},
  {"system_id": "d", "hostname": "d", "cpu_count": 8, "memory": 1024, "ephemeral_deploy": true, "power_state": "error", "status": 8,
   "interface_set": [{"id": 14, "name": "bond0", "type": "bond", "mac_address": "52:54:00:00:00:0D", "vlan": {"id": 2}}]}]}`

func open(t *testing.T) *inventory.DB {
	t.Helper()
	db := inventory.NewDB(1)
	if err := db.Load([]byte(lab), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	return db
}

// choose returns the machines that satisfy a query, or the error.
func choose(t *testing.T, read func(*inventory.DB, form.Values) (*constraints.Set, error), query string) string {
	t.Helper()
	db := open(t)
	values, err := form.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	err = db.View(func() error {
		set, err := read(db, values)
		if err != nil {
			return err
		}
		for _, m := range db.Machines.All() {
			if set.Fits(m) {
				out = append(out, m.SystemID)
			}
		}
		return nil
	})
	var p *problem.Problem
	if errors.As(err, &p) {
		return fmt.Sprintf("%d %s", p.Status, p.Body)
	}
	return strings.Join(out, " ")
}

func TestFilter(t *testing.T) {
	for query, want := range map[string]string{
		"": "a b c d", "op=read": "a b c d", "zone=": "a b c d",
		"id=a&id=d": "a d", "system_id=b": "b", "not_id=a&not_id=b": "c d", "hostname=c": "c", "not_hostname=c": "a b d",
		"mac_address=52:54:00:00:00:0a": "a", "mac_address=52:54:00:00:00:0B&mac_address=52:54:00:00:00:0d": "b d",
		"domain=other.example": "b", "not_domain=maas": "b", "agent_name=me": "c", "not_agent_name=me": "a b d",
		"status=deployed&status=broken": "b d", "not_status=ready": "b c d", "simple_status=failed": "c", "not_simple_status=failed": "a b d",
		"zone=z2": "b c", "not_in_zone=z2": "a d", "pool=p1": "b", "not_in_pool=p1": "a c d", "zone=z2&zone=default": "a b c d",
		"tags=t1": "a b", "tags=t1,t2": "b", "tags=t1%20t2": "b", "not_tags=t2": "a c d", "not_tags=t1&not_tags=t2": "c d",
		"arch=arm64": "c", "arch=amd64/generic": "a b d", "not_arch=amd64": "c",
		"cpu_count=4": "b c d", "cpu_count=4.5": "c d", "cpu_speed=2500": "b", "mem=4096": "b c", "cpu_count=1&cpu_count=8": "c d",
		"owner=ann": "a", "not_owner=ann": "b c d", "power_state=on": "a", "not_power_state=off": "a d",
		"pod=kvm": "b", "not_pod=kvm": "a c d", "pod_type=virsh": "b", "not_pod_type=virsh": "a c d", "pod=nowhere": "",
		"fabrics=f0": "a", "not_fabrics=f0": "b c d", "fabrics=id:1": "b d", "fabric_classes=10g": "a", "not_fabric_classes=10g": "b c d",
		"vlans=v2": "b d", "vlans=vid:40": "b d", "vlans=2": "b d", "vlans=space:s1": "a", "not_vlans=name:v2": "a c", "vlans=fabric:f1": "b d",
		"subnets=n1": "a", "subnets=2": "b", "subnets=cidr:10.1.0.0/24": "a", "subnets=ip:10.2.0.9": "b", "subnets=space:s1": "a", "not_subnets=n1": "b c d",
		"subnets=vlan:v2": "b d", "subnets=fabric:f0": "a",
		"link_speed=5000": "a", "deployment_target=memory": "d", "not_deployment_target=memory": "a b c",
		"storage=5": "a", "storage=20": "", "storage=root:5,80": "a", "storage=5,60,60": "", "storage=5(ssd)": "a", "storage=5(rotary)": "", "storage=5(ssd),40,80": "a",
		"interfaces=l:subnet=n1": "a", "interfaces=l:subnet=n1,tag=x": "a", "interfaces=l:tag=y": "", "interfaces=l:mode=dhcp": "b", "interfaces=l:ip=10.1.0.7": "a",
		"interfaces=l:id=12": "b", "interfaces=l:type=bond": "d", "interfaces=l:name=eth0,not_subnet=n1": "b", "interfaces=l:vid=40": "b d", "interfaces=l:fabric_class=10g": "a",
		"interfaces=l:space=s1;m:tag=x": "a", "interfaces=l:subnet_cidr=10.2.0.0/24": "b", "interfaces=l:vlan=v1": "a", "interfaces=l:fabric=f1": "b d",
		"devices=vendor_id=10de": "a", "devices=vendor_id=10de,product_id=2": "",

		"name=a": `400 {"name": ["No such constraint."]}`, "parent=a": `400 {"parent": ["No such constraint."]}`,
		"zone=q&pool=q&tags=q":     `400 {"pool": ["No such pool(s): q."], "tags": ["No such tag(s): 'q'."], "zone": ["No such zone(s): q."]}`,
		"not_tags=q,r":             `400 {"not_tags": ["No such tag(s): 'q', 'r'."]}`,
		"status=Ready":             `400 {"status": ["Select a valid choice. Ready is not one of the available choices."]}`,
		"power_state=dim":          `400 {"power_state": ["Select a valid choice. dim is not one of the available choices."]}`,
		"cpu_speed=fast":           `400 {"cpu_speed": ["Invalid CPU speed: number required."]}`,
		"link_speed=fast":          `400 {"link_speed": ["Invalid link speed: number required."]}`,
		"mem=nan":                  `400 {"mem": ["Invalid memory: number of MiB required."]}`,
		"mac_address=1":            `400 {"mac_address": ["'1' is not a valid MAC address."]}`,
		"arch=ppc":                 `400 {"arch": ["Architecture not recognised."]}`,
		"storage=5(":               `400 {"storage": ["Malformed storage constraint, \"5(\"."]}`,
		"fabrics=q":                `400 {"fabrics": ["No matching fabrics found."]}`,
		"vlans=q":                  `400 {"vlans": ["No matching VLANs found."]}`,
		"subnets=q":                `400 {"subnets": ["No matching subnets found."]}`,
		"not_subnets=q":            `400 {"not_subnets": ["No matching subnets found."]}`,
		"subnets=n1&subnets=q":     "a",
		"subnets=space:q":          "404 No Space matches the given query.",
		"subnets=fabric:q":         "404 No Fabric matches the given query.",
		"vlans=space:q":            "404 No Space matches the given query.",
		"owner=nobody":             `400 {"owner": ["No such owner(s): nobody."]}`,
		"owner=idle":               "",
		"interfaces=l:subnet=q":    "",
		"interfaces=l:fabric=q":    "",
		"interfaces=l:not_vlan=q":  "a b d",
		"interfaces=l:not_space=q": "404 No Space matches the given query.",
		"interfaces=l:q=1":         `400 {"interfaces": ["Unknown interfaces constraint: 'q"]}`,
	} {
		t.Run("When the query is "+query+", the machines or the error should be those of MAAS", func(t *testing.T) {
			NewWithT(t).Expect(choose(t, constraints.Filter, query)).To(Equal(want))
		})
	}
}

func TestAcquire(t *testing.T) {
	for query, want := range map[string]string{
		"name=a": "a", "name=b.other.example": "b", "name=b.maas": "", "agent_name=x&comment=y&dry_run=1&verbose=1&bridge_all=1": "a b c d",
		"hostname=a": `400 {"hostname": ["No such constraint."]}`, "status=ready": `400 {"status": ["No such constraint."]}`,
	} {
		NewWithT(t).Expect(choose(t, constraints.Acquire, query)).To(Equal(want), query)
	}
}

func TestDescriptions(t *testing.T) {
	for query, want := range map[string][2]string{
		"":                            {"[]", ""},
		"op=allocate&mem=5":           {"[('mem', ['5'])]", "mem=5.0"},
		"zone=z2&cpu_count=4&mem=1.5": {"[('zone', ['z2']), ('cpu_count', ['4']), ('mem', ['1.5'])]", "cpu_count=4.0 mem=1.5 zone=z2"},
		"tags=t1&x=&tags=t2":          {"", ""},
		"tags=t2&tags=t1":             {"[('tags', ['t2', 't1'])]", "tags=t2,t1"},
		"name=it%27s&comment=%22a%22": {`[('name', ["it's"]), ('comment', ['"a"'])]`, "name=it's"},
		"name=%27%22":                 {`[('name', ['\'"'])]`, `name='"`},
		"name=a%5Cb%0Ac":              {`[('name', ['a\\b\nc'])]`, "name=a\\b\nc"},
	} {
		t.Run("When the query is "+query+", its description should be that of MAAS", func(t *testing.T) {
			g := NewWithT(t)
			db := open(t)
			values, err := form.Parse(query)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(db.View(func() error {
				set, err := constraints.Acquire(db, values)
				if want[0] == "" {
					g.Expect(err).To(HaveOccurred(), "x is no constraint, even if it is empty")
					return nil
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(constraints.Asked(values)).To(Equal(want[0]))
				g.Expect(set.Resolved()).To(Equal(want[1]))
				return nil
			})).To(Succeed())
		})
	}
}

func TestMatched(t *testing.T) {
	for query, want := range map[string]map[string]any{
		"mem=1":                      {},
		"storage=5,60":               {},
		"storage=root:5,data:40":     {"storage": map[string][]int{"root": {21}, "data": {23}}},
		"storage=root:5,x:40,80":     {"storage": map[string][]int{"root": {21}, "x": {23}}},
		"interfaces=l:name=eth0":     {"interfaces": map[string][]int{"l": {11}}},
		"interfaces=l:tag=x;m:id=11": {"interfaces": map[string][]int{"l": {11}, "m": {11}}},
	} {
		t.Run("When "+query+" is requested, the response should name the matching disks and interfaces", func(t *testing.T) {
			g := NewWithT(t)
			db := open(t)
			values, err := form.Parse(query)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(db.View(func() error {
				set, err := constraints.Acquire(db, values)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(set.Matched(db.Machines.Get("a"), false)).To(Equal(want))
				g.Expect(set.Matched(db.Machines.Get("a"), true)).To(And(HaveKey("verbose_storage"), HaveKey("verbose_interfaces")))
				return nil
			})).To(Succeed())
		})
	}
}

func TestParseStorage(t *testing.T) {
	g := NewWithT(t)
	disks, ok := constraints.ParseStorage("root:20.5(ssd,fast),data1:100,7(x)")
	g.Expect(ok).To(BeTrue())
	g.Expect(disks).To(Equal([]constraints.Disk{
		{Label: "root", Bytes: 20_500_000_000, Tags: []string{"ssd", "fast"}}, {Label: "data1", Bytes: 100e9}, {Bytes: 7e9, Tags: []string{"x"}},
	}))
	for _, bad := range []string{"", "x", "root:", "root:x", "5)", "5(a", "5(a)(b)", "-5", "a:b:5", "a-b:5", "5, 6", "5()"} {
		_, ok := constraints.ParseStorage(bad)
		g.Expect(ok).To(BeFalse(), bad)
	}
}

func TestCost(t *testing.T) {
	g := NewWithT(t)
	small, large := &inventory.Machine{CPUCount: 2, Memory: 4096}, &inventory.Machine{CPUCount: 4, Memory: 1024}
	g.Expect(constraints.Cost(small)).To(Equal(6.0))
	g.Expect(constraints.Cost(large)).To(Equal(5.0), "memory counts by the GiB")
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{"zone=z2&mem=1", "storage=root:5(ssd),7", "interfaces=a:b=c;d:e=f", "subnets=cidr:10.1.0.0/24", "tags=,,%20"} {
		f.Add(seed)
	}
	db := inventory.NewDB(1)
	if err := db.Load([]byte(lab), time.Unix(0, 0)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := form.Parse(query)
		if err != nil {
			return
		}
		_ = db.View(func() error {
			set, err := constraints.Acquire(db, values)
			if err != nil {
				return nil //nolint:nilerr // A refusal is fine, a panic is not.
			}
			for _, m := range db.Machines.All() {
				if set.Fits(m) {
					set.Matched(m, true)
				}
			}
			if !strings.HasPrefix(constraints.Asked(values), "[") {
				t.Error("a description is a list")
			}
			return nil
		})
	})
}
