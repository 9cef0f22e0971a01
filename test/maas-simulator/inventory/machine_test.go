// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// TestTaskNext verifies that the next event of a task is its next step or its deadline, whichever is first.
func TestTaskNext(t *testing.T) {
	early, late := time.Unix(10, 0), time.Unix(20, 0)
	for name, test := range map[string]struct{ due, deadline, next time.Time }{
		"it waits for an external event without a timeout": {},
		"it waits with a timeout":                          {deadline: late, next: late},
		"a step is due and there is no timeout":            {due: early, next: early},
		"a step is due before the timeout":                 {due: early, deadline: late, next: early},
		"its time-out is before the step":                  {due: late, deadline: early, next: early},
		"both are at the same time":                        {due: early, deadline: early, next: early},
	} {
		t.Run("When "+name+", the earlier time should be the next event", func(t *testing.T) {
			NewWithT(t).Expect((&inventory.Task{Due: test.due, Deadline: test.deadline}).Next()).To(Equal(test.next))
		})
	}
}

func TestHasNetwork(t *testing.T) {
	for seed, want := range map[string]bool{
		`[]`:                                 false,
		`[{"links": []}]`:                    false,
		`[{"links": [{"mode": "link_up"}]}]`: false,
		`[{"links": [{"mode": "auto"}]}]`:    true,
		`[{"links": [{"mode": "dhcp"}]}]`:    true,
		`[{"enabled": false, "links": [{"mode": "auto"}]}]`:                                        false,
		`[{"links": [{"mode": "link_up"}]}, {"links": [{"mode": "link_up"}, {"mode": "static"}]}]`: true,
	} {
		m := load(t, `{"machines": [{"interface_set": `+seed+`}]}`).Machines.All()[0]
		NewWithT(t).Expect(m.HasNetwork()).To(Equal(want), seed)
	}
}

func TestBootInterface(t *testing.T) {
	for seed, want := range map[string]string{
		`{}`: "none", `{"interface_set": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}`: "a",
		`{"interface_set": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "boot_interface": {"id": 2}}`: "b",
		`{"interface_set": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "boot_interface": {"id": 9}}`: "a",
		`{"interface_set": [{"id": 1, "name": "a"}], "boot_interface": null}`:                              "a",
	} {
		got := "none"
		if nic := load(t, `{"machines": [`+seed+`]}`).Machines.All()[0].BootInterface(); nic != nil {
			got = nic.Name
		}
		NewWithT(t).Expect(got).To(Equal(want), seed)
	}
}

func TestStorage(t *testing.T) {
	for seed, want := range map[string]float64{
		`[]`: 0, `[{"size": 99999}]`: 0, `[{"size": 100000}]`: 0.1, `[{"size": 1000000000}]`: 1000, `[{"size": 1099999}]`: 1,
		`[{"size": 500000000000}, {"size": 500000050000}, {"size": 7000000, "type": "virtual"}]`: 1000000,
	} {
		m := load(t, `{"machines": [{"blockdevice_set": `+seed+`}]}`).Machines.All()[0]
		g := NewWithT(t)
		g.Expect(m.StorageMB()).To(Equal(want), seed)
		g.Expect(m.Diskless()).To(Equal(seed == `[]`), seed)
	}
}

func TestNumber(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		n     int
		ok    bool
	}{
		"a number":                        {4.0, 4, true},
		"a value close to a number":       {3.9999999, 4, true},
		"an int":                          {4, 4, true},
		"an int64":                        {int64(4), 4, true},
		"a JSON number":                   {json.Number("4.2"), 4, true},
		"an invalid JSON number":          {json.Number("four"), 0, false},
		"an object":                       {map[string]any{"id": 4.0}, 4, true},
		"an object without an ID":         {map[string]any{"name": "x"}, 0, false},
		"a text":                          {"4", 0, false},
		"nothing":                         {nil, 0, false},
		"an object whose ID is an object": {map[string]any{"id": map[string]any{"id": 4.0}}, 4, true},
	} {
		t.Run("When the value is "+name+", its number or ID should be read", func(t *testing.T) {
			n, ok := inventory.Number(test.value)
			NewWithT(t).Expect([]any{n, ok}).To(Equal([]any{test.n, test.ok}))
		})
	}
}

// TestMoments verifies the time formats of the MAAS API.
func TestMoments(t *testing.T) {
	want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, moment := range map[string]time.Time{
		"2026-01-02T03:04:05.678": want.Add(678 * time.Millisecond), "2026-01-02T03:04:05": want, "2026-01-02T03:04:05Z": want,
		"2026-01-02T04:04:05+01:00": want, "yesterday": {}, "": {},
	} {
		db := load(t, `{"ipaddresses": [{"ip": "10.0.0.1", "created": "`+text+`"}]}`)
		a := db.Addresses.All()[0]
		NewWithT(t).Expect(a.Created.Equal(moment)).To(BeTrue(), text)
		NewWithT(t).Expect(a.Updated.Equal(moment)).To(BeTrue(), text)
	}
}

func TestLinksAndAddresses(t *testing.T) {
	g := NewWithT(t)
	db := load(t, `{"subnets": [{"id": 1, "cidr": "10.0.0.0/24"}], "machines": [
		{"system_id": "a", "interface_set": [{"name": "x", "links": [{"id": 1, "mode": "link_up"}, {"id": 2, "mode": "auto", "subnet": 1}]},
		  {"name": "y", "links": [{"id": 3, "mode": "static", "subnet": 1, "ip_address": "10.0.0.3"}, {"id": 4, "mode": "dhcp", "subnet": 1, "ip_address": "10.0.0.4"}]}]},
		{"system_id": "b", "interface_set": [{"name": "z", "links": [{"id": 5, "mode": "auto", "subnet": 1, "ip_address": "10.0.0.5"}]}]}]}`)
	var joined []int
	for link := range db.Machines.Get("a").Links() {
		joined = append(joined, link.ID)
	}
	g.Expect(joined).To(Equal([]int{2, 3, 4}), "what is in no subnet joins none")
	for link := range db.Machines.Get("a").Links() {
		g.Expect(link.ID).To(Equal(2))
		break
	}
	var held []string
	for h := range db.Holdings() {
		held = append(held, fmt.Sprint(h.Machine.SystemID, h.Interface.Name, h.Link.ID))
		if h.Link.ID == 4 {
			break
		}
	}
	g.Expect(held).To(Equal([]string{"ay3", "ay4"}))
	g.Expect(db.Machines.Get("a").IPs()).To(Equal([]string{"10.0.0.3", "10.0.0.4"}))
}

// TestNamesThatAreTaken verifies that generated names are unique, even if most names are in use.
func TestNamesThatAreTaken(t *testing.T) {
	g := NewWithT(t)
	seed := inventory.NewDB(3)
	first := seed.NewSystemID()
	db := inventory.NewDB(3)
	g.Expect(db.Load([]byte(`{"devices": [{"system_id": "`+first+`"}]}`), time.Unix(0, 0))).To(Succeed())
	g.Expect(db.Update(func() error {
		g.Expect(db.NewSystemID()).NotTo(Equal(first), "a device has it")
		for range 300 {
			db.Machines.Put(&inventory.Machine{SystemID: db.NewSystemID(), Hostname: db.NewHostname()})
		}
		long := 0
		for _, m := range db.Machines.All() {
			if ok, _ := filepath.Match("*-*-???", m.Hostname); ok {
				long++
			} else {
				g.Expect(m.Hostname).To(MatchRegexp(`^[a-z]+-[a-z]+$`))
			}
		}
		g.Expect(long).To(BeNumerically(">", 44), "there are 256 short ones")
		return nil
	})).To(Succeed())
	g.Expect(db.ZoneByName("nowhere")).To(BeNil())
	g.Expect(db.PoolByName("nobody's")).To(BeNil())
	g.Expect(db.VMHostByName("none")).To(BeNil())
	g.Expect(db.FQDN(&inventory.Machine{Hostname: "alone", DomainID: 99})).To(Equal("alone"))
}

// TestRestarts verifies that each start of a site with the same seed generates new keys, and that these are
// reproducible.
func TestRestarts(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state")
	seen := map[inventory.Token]bool{}
	for range 3 {
		db := inventory.NewDB(7)
		_, err := db.Open(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(db.Update(func() error { db.Restarted(); return nil })).To(Succeed())
		seen[db.NewToken()] = true
		g.Expect(db.Close()).To(Succeed())
	}
	g.Expect(seen).To(HaveLen(3))
	fresh := inventory.NewDB(7)
	g.Expect(seen).To(HaveKey(fresh.NewToken()), "the first start is like none")
}
