// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// on runs an operation on a machine inside an update.
func on(site *simtest.Site, id string, do func(*inventory.Machine) error) error {
	return site.DB.Update(func() error { return do(site.DB.Machines.Edit(id)) })
}

// TestWhoWasIt verifies the event of a request: it has the user, the comment and the machine's name, and is not a
// status message.
func TestWhoWasIt(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	put(site, "aaaaa1", status.Deployed, "on")
	for _, request := range [][]string{
		{"alice", "?op=power_off", "comment", " tonight "}, {"alice", "?op=power_on"}, {"admin", "?op=test", "comment", "hm"}, {"admin", "?op=abort"},
		{"admin", "?op=rescue_mode"}, {"admin", "?op=exit_rescue_mode"}, {"alice", "?op=release", "comment", "done"},
		{"admin", "?op=commission", "comment", "again"}, {"admin", "?op=abort"},
	} {
		mustDo(t, site, request[0], "aaaaa1/"+request[1], request[2:]...)
		site.Pass(2 * time.Second)
	}
	var log []string
	g.Expect(site.DB.View(func() error {
		for _, e := range site.DB.Events.All() {
			g.Expect(e).To(And(HaveField("SystemID", "aaaaa1"), HaveField("Hostname", "one")))
			if e.Level == "DEBUG" {
				log = append(log, e.Username+" "+e.Type+" "+e.Description)
			}
		}
		return nil
	})).To(Succeed())
	g.Expect(log).To(Equal([]string{
		"alice User powering node down (alice) - tonight", "alice User powering node up (alice)", "admin User starting node testing (admin) - hm",
		"admin User aborting testing (admin)", "admin User starting rescue mode (admin)", "admin User stopping rescue mode (admin)",
		"alice User releasing node (alice) - done", "admin User starting node commissioning (admin) - again", "admin User aborting commissioning (admin)",
	}))
	g.Expect(*site.Has("one").StatusMessage).To(Equal("Aborted commissioning"))
	g.Expect(*site.Has("one").StatusAction).To(BeEmpty())
}

// TestAborts verifies that an abort ends the operation and powers off the machine. The machine keeps its owner, except
// after commissioning.
func TestAborts(t *testing.T) {
	tests := map[string]struct {
		from    status.Status
		request []string
		to      status.Status
		owner   string
	}{
		"commissioning": {status.New, []string{"?op=commission"}, status.New, ""},
		"a deployment":  {status.Allocated, []string{"?op=deploy"}, status.Allocated, "alice"},
		"a test":        {status.Deployed, []string{"?op=test"}, status.Deployed, "alice"},
		"an erasure":    {status.Deployed, []string{"?op=release", "erase", "true"}, status.FailedDiskErasing, "alice"},
	}
	for name, test := range tests {
		t.Run("When the aborted operation is "+name+", the machine should have the resulting status and owner", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", test.from, "on")
			mustDo(t, site, "admin", "aaaaa1/"+test.request[0], test.request[1:]...)
			site.Pass(2 * time.Second)
			mustDo(t, site, "admin", "aaaaa1/?op=abort", "comment", "enough")
			g.Expect(site.Has("one").Status).To(Equal(test.to), "at once")
			follow(t, site, "one")
			g.Expect(site.Has("one")).To(And(HaveField("Status", test.to), HaveField("PowerState", "off"), HaveField("Owner", test.owner)))
			g.Expect(site.Has("one").IPs()).To(BeEmpty())
		})
	}
	t.Run("When the deployment ends before the abort does, the machine should stay Deployed", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		put(site, "aaaaa1", status.Deploying, "on")
		var finish func(*inventory.Machine) error
		g.Expect(on(site, "aaaaa1", func(m *inventory.Machine) (err error) {
			finish, err = site.Life.Abort(m, "alice", "")
			return err
		})).To(Succeed())
		g.Expect(on(site, "aaaaa1", site.Life.OSReady)).To(Succeed())
		g.Expect(on(site, "aaaaa1", finish)).To(Succeed())
		g.Expect(site.Has("one")).To(And(HaveField("Status", status.Deployed), HaveField("PowerState", "on"), HaveField("Task", BeNil())))
	})
}

// TestStartAfterAbort verifies that no addresses are assigned after the response if the deployment is aborted by then.
func TestStartAfterAbort(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	put(site, "aaaaa1", status.Allocated, "off")
	g.Expect(on(site, "aaaaa1", site.Life.Start)).To(Succeed())
	g.Expect(site.Has("one")).To(And(HaveField("Status", status.Allocated), HaveField("Task", BeNil())))
	g.Expect(site.Has("one").IPs()).To(BeEmpty())
}

// TestReady verifies that only a deploying machine becomes Deployed when its system reports. Only the images of its
// series get the time of the deployment.
func TestReady(t *testing.T) {
	for _, s := range status.All() {
		t.Run("When the machine is "+s.String()+", only Deploying should change when the system reports", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", s, "on")
			g.Expect(on(site, "aaaaa1", site.Life.OSReady)).To(Succeed())
			want := s
			if s == status.Deploying {
				want = status.Deployed
			}
			g.Expect(site.Has("one").Status).To(Equal(want))
		})
	}
	for series, deployed := range map[string][]int{"noble": {3}, "jammy": {1, 2}, "custom/node": {4}} {
		t.Run("When "+series+" is deployed, its images should get the time of the deployment", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			mustDo(t, site, "alice", "aaaaa1/?op=deploy", "distro_series", series)
			follow(t, site, "one")
			var ids []int
			g.Expect(site.DB.View(func() error {
				for _, r := range site.DB.BootResources.All() {
					if r.LastDeployed != nil {
						g.Expect(r.LastDeployed.Equal(site.Now())).To(BeTrue())
						ids = append(ids, r.ID)
					}
				}
				return nil
			})).To(Succeed())
			g.Expect(ids).To(Equal(deployed))
		})
	}
}

// TestResume verifies that a machine with a transient status in the seed keeps the status until it is resumed.
func TestResume(t *testing.T) {
	ends := map[status.Status]status.Status{
		status.Commissioning: status.Ready, status.Testing: status.Testing, status.DiskErasing: status.Ready, status.Releasing: status.Ready,
		status.Deploying: status.Deployed, status.EnteringRescueMode: status.RescueMode, status.ExitingRescueMode: status.ExitingRescueMode,
	}
	for _, s := range status.All() {
		t.Run("When the machine is "+s.String()+", it should resume only if an operation is in progress", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", s, "on")
			site.Change("aaaaa1", func(m *inventory.Machine) { m.Previous, m.Commissioned = status.Ready, true })
			site.Pass(time.Hour)
			g.Expect(site.Has("one").Status).To(Equal(s), "by itself")
			err := on(site, "aaaaa1", site.Life.Resume)
			if _, moving := ends[s]; !moving {
				g.Expect(err).To(MatchError("machine one is " + s.String() + ": it has no operation to resume"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(on(site, "aaaaa1", site.Life.Resume)).NotTo(Succeed(), "it goes on already")
			follow(t, site, "one")
			want := ends[s]
			if want == s {
				want = status.Ready // the status before
			}
			g.Expect(site.Has("one").Status).To(Equal(want))
		})
	}
}

// TestBrokenWhileDeploying verifies that a deploying machine becomes Broken immediately, and that the running
// installation does not change that.
func TestBrokenWhileDeploying(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.BrokenOnDeploy, Machine: "one", Count: 1})
	mustDo(t, site, "alice", "aaaaa1/?op=deploy")
	seen, _ := follow(t, site, "one")
	g.Expect(seen[len(seen)-1]).To(Equal("Broken, off: Marking node broken - hardware failure"))
	g.Expect(site.Has("one")).To(And(HaveField("Owner", ""), HaveField("OSystem", ""), HaveField("ErrorDescription", "hardware failure"),
		HaveField("Previous", status.Deploying)))
	mustDo(t, site, "admin", "aaaaa1/?op=mark_fixed", "comment", "new fan")
	g.Expect(site.Has("one")).To(And(HaveField("Status", status.Ready), HaveField("ErrorDescription", "")))
}

// TestOverride verifies that an override restores the status: Deployed if a system is installed, otherwise Ready.
func TestOverride(t *testing.T) {
	for osystem, want := range map[string]status.Status{"": status.Ready, "ubuntu": status.Deployed} {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		put(site, "aaaaa1", status.FailedTesting, "on")
		site.Change("aaaaa1", func(m *inventory.Machine) { m.OSystem = osystem })
		mustDo(t, site, "admin", "aaaaa1/?op=override_failed_testing")
		g.Expect(site.Has("one").Status).To(Equal(want))
	}
}

// TestTestsOfAFailedMachine verifies that passed tests restore the status that the machine had before its failed
// tests.
func TestTestsOfAFailedMachine(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	put(site, "aaaaa1", status.Deployed, "on")
	simtest.FailTests(t, site.Simulator, "one")
	follow(t, site, "one")
	g.Expect(site.Has("one").Status).To(Equal(status.FailedTesting))
	mustDo(t, site, "admin", "aaaaa1/?op=test")
	follow(t, site, "one")
	g.Expect(site.Has("one")).To(And(HaveField("Status", status.Deployed), HaveField("Owner", "alice"), HaveField("PowerState", "on")))
}

// TestReleaseForgets verifies that a release deletes all data of the owner.
func TestReleaseForgets(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	mustDo(t, site, "alice", "?op=allocate", "name", "one", "agent_name", "mine")
	mustDo(t, site, "alice", "aaaaa1/?op=set_workload_annotations", "cluster", "demo")
	mustDo(t, site, "alice", "aaaaa1/?op=deploy", "agent_name", "other", "user_data", "eHg=", "distro_series", "noble")
	g.Expect(site.Has("one").AgentName).To(Equal("other"), "a deployment may give another name")
	follow(t, site, "one")
	g.Expect(site.Has("one").IPs()).To(HaveLen(1))
	token := site.Has("one").Token
	mustDo(t, site, "alice", "aaaaa1/?op=release")
	g.Expect(site.Has("one")).To(And(HaveField("Owner", "alice"), HaveField("AgentName", ""), HaveField("OSystem", ""), HaveField("Series", ""),
		HaveField("HWEKernel", ""), HaveField("UserData", BeNil()), HaveField("Annotations", HaveLen(1)), HaveField("Netboot", true)))
	follow(t, site, "one")
	m := site.Has("one")
	g.Expect(m).To(And(HaveField("Owner", ""), HaveField("Annotations", BeEmpty()), HaveField("Locked", false), HaveField("ErrorDescription", ""),
		HaveField("Previous", status.Ready)))
	g.Expect(m.IPs()).To(BeEmpty())
	g.Expect(m.Token).NotTo(Equal(token), "the old system's credentials are worth nothing")
	site.Change("aaaaa2", func(m *inventory.Machine) { m.Status, m.Owner, m.Commissioned = status.Allocated, "alice", false })
	mustDo(t, site, "alice", "aaaaa2/?op=release")
	g.Expect(site.Has("two").Status).To(Equal(status.New), "commissioning never passed")
}

func TestPickIP(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	pick := func(subnet int) (ip string, err error) {
		err = errors.Join(err, site.DB.View(func() error {
			addr, err := site.Life.PickIP(subnet)
			ip = addr.String()
			return err
		}))
		return ip, err
	}
	ip, err := pick(1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ip).To(Equal("10.9.0.251"), "of the four after the dynamic range, not of the 190 before it")
	_, err = pick(99)
	var p *problem.Problem
	g.Expect(errors.As(err, &p)).To(BeTrue())
	g.Expect(p.Status).To(Equal(404))
}

// TestWhoGetsAddresses verifies that a deployment assigns addresses to the auto links of enabled interfaces, and that a
// release unassigns only those.
func TestWhoGetsAddresses(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	subnet := 1
	link := func(id int, mode, ip string) inventory.Link {
		return inventory.Link{ID: id, Mode: mode, SubnetID: &subnet, IP: ip}
	}
	site.Change("aaaaa3", func(m *inventory.Machine) {
		m.Interfaces[0].Links = append(m.Interfaces[0].Links, link(90, "static", "10.9.0.7"), link(91, "dhcp", ""), link(92, "auto", "10.9.0.8"))
		m.Interfaces[1].Enabled = false
	})
	mustDo(t, site, "alice", "aaaaa3/?op=deploy")
	g.Expect(site.Has("three").IPs()).To(Equal([]string{"10.9.0.251", "10.9.0.7", "10.9.0.8"}), "one that is known is kept")
	g.Expect(site.Has("three").Interfaces[0].Links[0].Since).To(Equal(site.Now()))
	follow(t, site, "three")
	mustDo(t, site, "alice", "aaaaa3/?op=release")
	follow(t, site, "three")
	g.Expect(site.Has("three").IPs()).To(Equal([]string{"10.9.0.7"}))
}

// TestAddressBoot verifies that commissioning links an unconfigured boot interface to the first subnet of its VLAN.
func TestAddressBoot(t *testing.T) {
	two, nowhere := 2, 99
	for name, test := range map[string]struct {
		vlan  *int
		links int
	}{"has a VLAN with a subnet": {&two, 1}, "has a VLAN without a subnet": {&nowhere, 0}, "has no VLAN": {nil, 0}} {
		t.Run("When the boot interface "+name+", commissioning should link it only to a subnet of its VLAN", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", status.New, "off")
			site.Change("aaaaa1", func(m *inventory.Machine) { m.Interfaces[0].Links, m.Interfaces[0].VLANID = nil, test.vlan })
			mustDo(t, site, "admin", "aaaaa1/?op=commission")
			follow(t, site, "one")
			links := site.Has("one").Interfaces[0].Links
			g.Expect(links).To(HaveLen(test.links))
			if test.links > 0 {
				g.Expect(links[0]).To(And(HaveField("Mode", "auto"), HaveField("SubnetID", HaveValue(Equal(2))), HaveField("IP", "")))
			}
		})
	}
}
