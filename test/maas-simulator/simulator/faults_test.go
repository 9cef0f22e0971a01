// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/load"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// deployed returns a site whose machine "one" is deployed by user alice.
func deployed(t *testing.T) *simtest.Site {
	t.Helper()
	site := simtest.New(t, simtest.Rack)
	if answer := site.Do("alice", "POST", "machines/aaaaa1/?op=deploy"); answer.Code != 200 {
		t.Fatal(answer)
	}
	site.Settle(time.Hour)
	if s := site.Has("one").Status; s != status.Deployed {
		t.Fatalf("one is %s", s)
	}
	return site
}

func TestProxy(t *testing.T) {
	g := NewWithT(t)
	site := deployed(t)
	mend := simtest.Behind(t, site.Simulator, 403, "machines.read", "users.whoami")
	for _, path := range []string{"machines/", "machines/?agent_name=x", "users/?op=whoami"} {
		answer := site.Do("alice", "GET", path)
		g.Expect(answer.Code).To(Equal(403), path)
		g.Expect(answer.Header.Get("Content-Type")).To(Equal("text/html"))
		g.Expect(answer.Header).NotTo(HaveKey("X-Maas-Api-Hash"), "it is not MAAS that answers")
		g.Expect(answer.Body).To(ContainSubstring("<h1>403 Forbidden</h1>"))
	}
	g.Expect(site.Do("alice", "GET", "machines/aaaaa1/").Code).To(Equal(200), "what was not named")
	mend()
	g.Expect(site.Do("alice", "GET", "machines/").Code).To(Equal(200))
	simtest.Behind(t, site.Simulator, 404)
	g.Expect(site.Do("alice", "GET", "machines/aaaaa1/").Code).To(Equal(404), "no operation is named")
}

func TestAnotherUsersKey(t *testing.T) {
	g := NewWithT(t)
	site := deployed(t)
	g.Expect(site.Do("bob", "GET", "machines/aaaaa1/").Code).To(Equal(403))
	g.Expect(site.Do("bob", "GET", "machines/").Each("hostname")).NotTo(ContainElement("one"))
	g.Expect(site.Do("bob", "POST", "machines/aaaaa1/?op=release").Code).To(Equal(403))
	g.Expect(site.Has("one").Status).To(Equal(status.Deployed))
}

func TestRefusedDeployment(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	const words = `{"hwe_kernel": ["hwe-99.04 is not available for ubuntu/jammy on amd64/generic."]}`
	simtest.Refuse(t, site.Simulator, "machine.deploy", "one", 400, words)
	simtest.Refuse(t, site.Simulator, "machine.deploy", "two", 409, "")
	for range 3 {
		answer := site.Do("alice", "POST", "machines/aaaaa1/?op=deploy")
		g.Expect(answer.Code).To(Equal(400))
		g.Expect(answer.Header.Get("Content-Type")).To(Equal("application/json"))
		g.Expect(answer.Body).To(Equal(words))
		g.Expect(site.Do("alice", "POST", "machines/aaaaa2/?op=deploy").Code).To(Equal(409), "it stands")
	}
	g.Expect(site.Do("alice", "POST", "machines/aaaaa3/?op=deploy").Code).To(Equal(200))
}

func TestDeadBMC(t *testing.T) {
	pass := func(site *simtest.Site, minutes int) {
		for range minutes {
			site.Pass(time.Minute)
		}
	}
	t.Run("When a machine is deployed, it should stay in Deploying until the timeout", func(t *testing.T) {
		g := NewWithT(t)
		site := simtest.New(t, simtest.Rack)
		simtest.KillBMC(t, site.Simulator, "one")
		g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=deploy").Code).To(Equal(200))
		pass(site, 59)
		g.Expect(site.Has("one").Status).To(Equal(status.Deploying))
		g.Expect(site.Has("one").PowerState).To(Equal("off"))
		pass(site, 1)
		g.Expect(site.Has("one").Status).To(Equal(status.FailedDeployment))
		g.Expect(*site.Has("one").StatusMessage).To(ContainSubstring("Machine operation 'Deploying' timed out after 1h0m0s."))
	})
	t.Run("When a machine is released, every attempt should fail until the BMC is replaced", func(t *testing.T) {
		g := NewWithT(t)
		site := deployed(t)
		mend := simtest.KillBMC(t, site.Simulator, "one")
		for range 3 {
			g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=release").Code).To(Equal(200))
			pass(site, 4)
			g.Expect(site.Has("one").Status).To(Equal(status.Releasing))
			pass(site, 1)
			g.Expect(site.Has("one").Status).To(Equal(status.FailedReleasing))
			g.Expect(site.Has("one").Owner).To(Equal("alice"))
		}
		mend()
		site.Do("alice", "POST", "machines/aaaaa1/?op=release")
		site.Settle(time.Minute)
		g.Expect(site.Has("one").Status).To(Equal(status.Ready), "once somebody has replaced the BMC")
	})
	t.Run("When disks are erased, the machine should stay in Disk erasing indefinitely", func(t *testing.T) {
		g := NewWithT(t)
		site := deployed(t)
		simtest.KillBMC(t, site.Simulator, "one")
		site.Do("alice", "POST", "machines/aaaaa1/?op=release", "erase", "true")
		pass(site, 24*60)
		g.Expect(site.Has("one").Status).To(Equal(status.DiskErasing))
	})
	t.Run("When the power state is queried, MAAS should report that it is unknown", func(t *testing.T) {
		g := NewWithT(t)
		site := deployed(t)
		simtest.KillBMC(t, site.Simulator, "one")
		g.Expect(site.Do("alice", "GET", "machines/aaaaa1/?op=query_power_state").Code).To(Equal(503))
		g.Expect(site.Has("one").PowerState).To(Equal("error"))
		g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=power_off").Code).To(Equal(200), "it is accepted, and nothing happens")
	})
}

func TestChosenMachinesFail(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	simtest.FailDeployments(t, site.Simulator, "t*", 3)
	failures := 0
	for range 3 {
		for _, id := range []string{"aaaaa1", "aaaaa2", "aaaaa3"} {
			site.Do("alice", "POST", "machines/"+id+"/?op=deploy")
		}
		site.Settle(time.Hour)
		g.Expect(site.Has("one").Status).To(Equal(status.Deployed), "it is not one of them")
		for _, id := range []string{"aaaaa1", "aaaaa2", "aaaaa3"} {
			if site.Has(id).Status == status.FailedDeployment {
				failures++
			}
			site.Do("alice", "POST", "machines/"+id+"/?op=release")
		}
		site.Settle(time.Hour)
	}
	g.Expect(failures).To(Equal(3))
}

func TestFailedHardwareTests(t *testing.T) {
	g := NewWithT(t)
	site := deployed(t)
	simtest.FailTests(t, site.Simulator, "one")
	g.Expect(site.Has("one").Status).To(Equal(status.Testing))
	site.Settle(time.Hour)
	one := site.Has("one")
	g.Expect(one.Status).To(Equal(status.FailedTesting))
	g.Expect(one.Owner).To(Equal("alice"))
	g.Expect(one.OSystem).To(Equal("ubuntu"))
	g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=release").Code).To(Equal(409), "it cannot be released from there")
}

func TestDeploymentReverts(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.DeployReverts, Machine: "one", Count: 1})
	answer := site.Do("alice", "POST", "machines/aaaaa1/?op=deploy", "distro_series", "noble")
	g.Expect(answer.Code).To(Equal(503))
	one := site.Do("alice", "GET", "machines/aaaaa1/").Object()
	g.Expect(one).To(And(HaveKeyWithValue("status_name", "Allocated"), HaveKeyWithValue("osystem", "ubuntu"),
		HaveKeyWithValue("distro_series", "noble"), HaveKeyWithValue("owner", "alice"), HaveKeyWithValue("ip_addresses", BeEmpty())))
	g.Expect(site.Do("alice", "POST", "machines/aaaaa1/?op=deploy").Code).To(Equal(200))
}

func TestListsCostTime(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack, func(o *simulator.Options) {
		o.Cost = load.Cost{Workers: 1, Machine: 25 * time.Millisecond}
	})
	ask := func(path string) chan int {
		done := make(chan int, 1)
		go func() { done <- site.Do("alice", "GET", path).Code }()
		return done
	}
	all := ask("machines/")
	g.Eventually(site.Clock.HasWaiters).Should(BeTrue())
	one := ask("machines/?id=aaaaa1")
	g.Consistently(all, "50ms").ShouldNot(Receive())
	site.Clock.Step(5 * 25 * time.Millisecond)
	g.Eventually(all).Should(Receive(Equal(200)))
	g.Eventually(site.Clock.HasWaiters).Should(BeTrue())
	site.Clock.Step(25 * time.Millisecond)
	g.Eventually(one).Should(Receive(Equal(200)))
}
