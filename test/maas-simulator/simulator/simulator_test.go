// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/seeds"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestRestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	site := func(seed string) *simtest.Site {
		return simtest.New(t, seed, func(o *simulator.Options) { o.StateFile = state })
	}
	t.Run("When the process restarts, it should keep its state and continue its operations", func(t *testing.T) {
		g := NewWithT(t)
		first := site(simtest.Rack)
		g.Expect(first.Do("alice", "POST", "machines/?op=allocate", "name", "two", "agent_name", "mine").Code).To(Equal(200))
		g.Expect(first.Do("alice", "POST", "machines/aaaaa1/?op=deploy", "user_data", "eHg=").Code).To(Equal(200))
		g.Expect(first.Do("admin", "POST", "zones/", "name", "west").Code).To(Equal(200))
		first.Pass(10 * time.Second)
		key, token := first.Key("alice"), first.Has("one").Token
		before := first.Do("admin", "GET", "machines/").Body
		g.Expect(first.Close()).To(Succeed())

		second := site(`{"zones": [{"id": 1, "name": "another seed"}]}`)
		g.Expect(second.Key("alice")).To(Equal(key))
		g.Expect(second.Has("one").Token).To(Equal(token))
		g.Expect(second.Do("admin", "GET", "machines/").Body).To(MatchJSON(before))
		g.Expect(second.Do("admin", "GET", "machines/?agent_name=mine").Each("hostname")).To(Equal([]string{"two"}))
		g.Expect(second.Do("admin", "GET", "zones/").Each("name")).To(Equal([]string{"default", "north", "south", "west"}))
		second.Settle(time.Hour)
		g.Expect(second.Has("one")).To(And(HaveField("Status", status.Deployed), HaveField("UserData", []byte("xx"))))
		g.Expect(second.Do("admin", "POST", "zones/", "name", "east").Object()).To(HaveKeyWithValue("id", 5.0))
	})
	t.Run("When a key is configured, both it and the old key should be valid", func(t *testing.T) {
		g := NewWithT(t)
		third := simtest.New(t, "", func(o *simulator.Options) {
			o.StateFile = state
			o.Users = []simulator.User{{Name: "alice", Key: "aaa:bbb:ccc"}}
		})
		g.Expect(third.Key("alice")).To(Equal("aaa:bbb:ccc"))
		g.Expect(third.Do("alice", "GET", "users/?op=whoami").Object()).To(HaveKeyWithValue("username", "alice"))
		g.Expect(third.Keys()).To(HaveLen(3))
	})
	t.Run("When the key does not have three parts, it should return an error", func(t *testing.T) {
		_, err := simulator.New(simulator.Options{Users: []simulator.User{{Name: "eve", Key: "abc"}}})
		NewWithT(t).Expect(err).To(MatchError("the key of user eve must have the form consumer:token:secret"))
	})
	t.Run("When the state file is a folder, it should return an error", func(t *testing.T) {
		_, err := simulator.New(simulator.Options{StateFile: t.TempDir()})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("opening the state file")))
	})
}

func TestRun(t *testing.T) {
	t.Run("When nothing takes time, a machine should be Deployed and Ready again at once", func(t *testing.T) {
		g := NewWithT(t)
		s, err := simulator.New(simulator.Options{Seed: seeds.Demo})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			s.Run(ctx)
			close(ended)
		}()
		for range 2 {
			m := s.Machines()[0]
			g.Expect(s.DB.Update(func() error {
				fresh := s.DB.Machines.Edit(m.SystemID)
				if err := s.Life.Deploy(fresh, lifecycle.Deployment{User: "alice", OSystem: "custom", Series: "kubernetes-node"}); err != nil {
					return err
				}
				return s.Life.Start(fresh)
			})).To(Succeed())
			s.Life.Wake()
			g.Eventually(func() status.Status { return s.Machine(m.SystemID).Status }).Should(Equal(status.Deployed))
			g.Expect(s.DB.Update(func() error { return s.Life.Release(s.DB.Machines.Edit(m.SystemID), "alice", "", false) })).To(Succeed())
			s.Life.Wake()
			g.Eventually(func() status.Status { return s.Machine(m.SystemID).Status }).Should(Equal(status.Ready))
		}
		stop()
		g.Eventually(ended).Should(BeClosed())
	})
	t.Run("When a machine is changed outside MAAS, the change should be visible", func(t *testing.T) {
		g := NewWithT(t)
		s, err := simulator.New(simulator.Options{Seed: seeds.Demo})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Change(s.Machines()[0].SystemID, func(m *inventory.Machine) { m.PowerState = "error" })).To(BeTrue())
		g.Expect(s.Machines()[0].PowerState).To(Equal("error"))
		g.Expect(s.Change("zzzzzz", func(*inventory.Machine) {})).To(BeFalse())
		g.Expect(s.Machine("zzzzzz")).To(BeNil())
		g.Expect(s.Now()).To(BeTemporally("~", time.Now(), time.Minute))
	})
}

func TestDemoSeed(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, string(seeds.Demo))
	machines := site.Machines()
	g.Expect(len(machines)).To(BeNumerically(">=", 6))
	zones, sizes := map[int]bool{}, map[int]bool{}
	for _, m := range machines {
		g.Expect(m.Status).To(Equal(status.Ready))
		g.Expect(m.Disks[0].Name).To(Equal("sda"))
		g.Expect(m.HasNetwork()).To(BeTrue())
		zones[m.ZoneID], sizes[m.CPUCount] = true, true
		answer := site.Do("alice", "POST", "machines/"+m.SystemID+"/?op=deploy", "distro_series", "custom/kubernetes-node")
		g.Expect(answer.Code).To(Equal(200), answer.Body)
		ip := site.Has(m.SystemID).IPs()[0]
		g.Expect(ip).To(MatchRegexp(`^172\.30\.240\.[12]\d$`), "addresses come from the machines' range")
	}
	g.Expect(zones).To(HaveLen(3))
	g.Expect(len(sizes)).To(BeNumerically(">=", 4))
	g.Expect(site.Do("alice", "GET", "zones/").Each("name")).To(Equal([]string{"default", "az1", "az2"}))
	for _, host := range []string{"1", "2"} {
		answer := site.Do("admin", "POST", "vm-hosts/"+host+"/?op=compose", "storage", "root:10", "skip_commissioning", "true")
		g.Expect(answer.Code).To(Equal(200), answer.Body)
	}
}

func TestBadSeeds(t *testing.T) {
	for name, seed := range map[string]string{
		"must be one JSON object":           `[]`,
		"two machines have the system_id":   `{"machines": [{"system_id": "a"}, {"system_id": "a"}]}`,
		"which MAAS does not know":          `{"machines": [{"system_id": "a", "status": 77}]}`,
		"the cidr of subnet 1":              `{"subnets": [{"id": 1, "cidr": "x"}]}`,
		"names subnet 9, which is not":      `{"machines": [{"interface_set": [{"links": [{"mode": "auto", "subnet": 9}]}]}]}`,
		`the domain of dnsresource "a.b.c"`: `{"dnsresources": [{"fqdn": "a.b.c"}]}`,
		"has no system_id":                  `{"rackcontrollers": [{}]}`,
	} {
		_, err := simulator.New(simulator.Options{Seed: []byte(seed)})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(name)))
	}
}

func TestSeedInMotion(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, `{"machines": [
		{"system_id": "a1", "hostname": "a", "status": 1, "power_type": "ipmi"}, {"system_id": "a2", "hostname": "b", "status": 21, "power_type": "ipmi"},
		{"system_id": "a3", "hostname": "c", "status": 14, "power_type": "ipmi", "owner": "bob"}, {"system_id": "a4", "hostname": "d", "status": 12, "power_type": "ipmi", "owner": "bob"},
		{"system_id": "a5", "hostname": "e", "status": 9, "power_type": "ipmi", "owner": "bob", "osystem": "ubuntu", "distro_series": "jammy"},
		{"system_id": "a6", "hostname": "f", "status": 17, "power_type": "ipmi"}, {"system_id": "a7", "hostname": "g", "status": 19, "power_type": "ipmi"}]}`)
	before := site.Machines()
	site.Pass(24 * time.Hour)
	g.Expect(site.Machines()).To(Equal(before), "a seed shows a site at one moment, which lasts until something acts")
	for _, m := range before {
		site.Change(m.SystemID, func(m *inventory.Machine) { g.Expect(site.Life.Resume(m)).To(Succeed()) })
	}
	site.Settle(time.Hour)
	var got []status.Status
	for _, m := range site.Machines() {
		got = append(got, m.Status)
	}
	g.Expect(got).To(Equal([]status.Status{
		status.Ready, status.Ready, status.Ready, status.Ready, status.Deployed, status.RescueMode, status.Ready,
	}))
	site.Change("a1", func(m *inventory.Machine) {
		g.Expect(site.Life.Resume(m)).To(MatchError("machine a is Ready: it has no operation to resume"))
	})
}
