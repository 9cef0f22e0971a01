// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// meddling is a backend that runs a function during an installation.
type meddling struct {
	boot.None
	happens func()
}

func (m *meddling) Install(context.Context, boot.Spec) error {
	m.happens()
	return nil
}

// TestMeanwhile verifies that the success of an installation has no effect if the deployment has ended in the meantime.
func TestMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*simtest.Site)
		to        status.Status
	}{
		"the machine reports a failure": {func(site *simtest.Site) {
			site.Change("aaaaa1", func(m *inventory.Machine) { site.Life.Fail(m, "no disk") })
		}, status.FailedDeployment},
		"its owner aborts it":    {func(site *simtest.Site) { site.Do("alice", "POST", "machines/aaaaa1/?op=abort") }, status.Allocated},
		"its system is up":       {func(site *simtest.Site) { _ = on(site, "aaaaa1", site.Life.OSReady) }, status.Deployed},
		"the machine is deleted": {func(site *simtest.Site) { site.Do("admin", "DELETE", "machines/aaaaa1/") }, -1},
		"the machine is tested again": {func(site *simtest.Site) {
			site.Change("aaaaa1", func(m *inventory.Machine) {
				site.Life.Fail(m, "x")
				_ = site.Life.Test(m, "admin", "")
			})
		}, status.FailedDeployment},
	} {
		t.Run("When "+name+" during an installation, the end of the installation should have no effect", func(t *testing.T) {
			g := NewWithT(t)
			backend := &meddling{}
			site := simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.Backend = backend })
			backend.happens = func() { test.meanwhile(site) }
			mustDo(t, site, "alice", "aaaaa1/?op=deploy")
			site.Settle(10 * time.Minute)
			if test.to < 0 {
				g.Expect(site.Machine("one")).To(BeNil())
				return
			}
			g.Expect(site.Has("one").Status).To(Equal(test.to))
			g.Expect(site.Has("one").Task).To(BeNil())
		})
	}
}

// TestFailuresAreLogged verifies the events of failures: they contain the kind of the failure and the status that the
// machine gets.
func TestFailuresAreLogged(t *testing.T) {
	for request, want := range map[string][]string{
		"?op=deploy":     {"ERROR Marking node failed EIO", "ERROR Node installation failure EIO"},
		"?op=commission": {"ERROR Marking node failed EIO"},
	} {
		t.Run("When "+request+" fails, the event log should have the failure", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.DeployFails, Message: "EIO"})
			simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.CommissionFails, Message: "EIO"})
			mustDo(t, site, "admin", "aaaaa1/"+request)
			follow(t, site, "one")
			var errors []string
			events, _ := site.Do("admin", "GET", "events/?op=query&level=ERROR").Object()["events"].([]any)
			for _, e := range events {
				event := e.(map[string]any)
				errors = append(errors, fmt.Sprint(event["level"], " ", event["type"], " ", event["description"]))
			}
			g.Expect(errors).To(Equal(want))
		})
	}
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	put(site, "aaaaa1", status.Deployed, "off")
	site.Change("aaaaa1", func(m *inventory.Machine) { site.Life.Fail(m, "no power") })
	g.Expect(shown(site.Has("one"))).To(Equal("Deployed, off: Failed to power on node - no power"), "what does nothing cannot fail")
}

// TestJudgements verifies that the event log has the user who marks a machine broken or fixed, or overrides failed
// tests.
func TestJudgements(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	put(site, "aaaaa1", status.Deployed, "off")
	mustDo(t, site, "alice", "aaaaa1/?op=mark_broken", "comment", "smoke")
	mustDo(t, site, "admin", "aaaaa1/?op=mark_fixed", "comment", "new fan")
	g.Expect(site.Has("one").Status).To(Equal(status.Deployed))
	put(site, "aaaaa1", status.FailedTesting, "off")
	mustDo(t, site, "admin", "aaaaa1/?op=override_failed_testing", "comment", "old test")
	var log []string
	g.Expect(site.DB.View(func() error {
		for _, e := range site.DB.Events.All() {
			if e.Level == "DEBUG" {
				log = append(log, e.Type+" "+e.Description)
			}
		}
		return nil
	})).To(Succeed())
	g.Expect(log).To(Equal([]string{"User marking node broken (alice) - smoke", "User marking node fixed (admin) - new fan",
		"User overrode 'Failed testing' status (admin) - old test"}))
}

// TestWhatIsOffered verifies that an operation is available exactly in the statuses of a MAAS server, and never on a
// busy machine.
func TestWhatIsOffered(t *testing.T) {
	busy := []status.Status{
		status.Commissioning, status.Deploying, status.Releasing, status.DiskErasing, status.EnteringRescueMode, status.ExitingRescueMode, status.Testing,
	}
	refusedAs := map[string]func(status.Status) bool{
		"test":   func(s status.Status) bool { return s.In(busy...) },
		"deploy": func(s status.Status) bool { return !s.In(status.Ready, status.Allocated) },
		"commission": func(s status.Status) bool {
			return !s.In(status.New, status.FailedCommissioning, status.Ready, status.Broken, status.FailedTesting, status.Missing)
		},
		"mark_fixed": func(s status.Status) bool { return s != status.Broken },
		"release": func(s status.Status) bool {
			return !s.In(status.Ready, status.Releasing) && !s.Releasable()
		},
		"abort": func(s status.Status) bool {
			return !s.In(status.Commissioning, status.Deploying, status.DiskErasing, status.Testing)
		},
	}
	for operation, refused := range refusedAs {
		for _, s := range status.All() {
			t.Run(fmt.Sprintf("When a machine is %s, %s should be available only as in MAAS", s, operation), func(t *testing.T) {
				g := NewWithT(t)
				site := simtest.New(t, simtest.Rack)
				put(site, "aaaaa1", s, "on")
				answer := site.Do("admin", "POST", "machines/aaaaa1/?op="+operation)
				g.Expect(answer.Code != 200).To(Equal(refused(s)), answer.Body)
				if refused(s) {
					g.Expect(site.Has("one").Status).To(Equal(s))
				}
			})
		}
	}
}

// TestNextBoot verifies that an installed machine boots from its disk, and an erased or released one from the network.
func TestNextBoot(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	mustDo(t, site, "alice", "aaaaa1/?op=deploy")
	g.Expect(site.Has("one").Netboot).To(BeTrue(), "the installer comes from the network")
	follow(t, site, "one")
	g.Expect(site.Has("one").Netboot).To(BeFalse())
	mustDo(t, site, "alice", "aaaaa1/?op=release", "erase", "true")
	g.Expect(site.Has("one").Netboot).To(BeTrue())
}

// TestBlankDisks verifies that the fault DiskEmpty affects only the start of a Deployed machine.
func TestBlankDisks(t *testing.T) {
	g := NewWithT(t)
	site, metal := onMetal(t)
	simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.DiskEmpty, Machine: "one"})
	mustDo(t, site, "alice", "aaaaa1/?op=deploy")
	site.Settle(3 * time.Minute)
	g.Expect(metal.spec.Blank).To(BeFalse())
	up(t, site, "aaaaa1")
	mustDo(t, site, "alice", "aaaaa1/?op=power_on")
	follow(t, site, "one")
	g.Expect(metal.spec.Blank).To(BeTrue())
}

// TestPowerOfTheAllocated verifies that powering on an Allocated machine does not start it in the backend, because it
// has no system.
func TestPowerOfTheAllocated(t *testing.T) {
	g := NewWithT(t)
	site, metal := onMetal(t)
	put(site, "aaaaa1", status.Allocated, "off")
	mustDo(t, site, "alice", "aaaaa1/?op=power_on")
	follow(t, site, "one")
	g.Expect(site.Has("one").PowerState).To(Equal("on"))
	g.Expect(metal.asked()).To(BeEmpty())
	mustDo(t, site, "alice", "aaaaa1/?op=power_off")
	follow(t, site, "one")
	g.Expect(site.Has("one").PowerState).To(Equal("off"))
	g.Expect(metal.asked()).To(Equal("off"))
}
