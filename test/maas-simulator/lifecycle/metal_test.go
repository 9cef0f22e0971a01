// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// noted is a backend that records its calls, and fails the configured ones.
type noted struct {
	boot.None
	mu    sync.Mutex
	calls []string
	spec  boot.Spec
	fails map[string]error
}

func (n *noted) note(what string, spec boot.Spec) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, what)
	if spec.SystemID != "" {
		n.spec = spec
	}
	return n.fails[what]
}

func (n *noted) Install(_ context.Context, spec boot.Spec) error { return n.note("install", spec) }
func (n *noted) PowerOn(_ context.Context, spec boot.Spec) error { return n.note("on", spec) }
func (n *noted) PowerOff(context.Context, string) error          { return n.note("off", boot.Spec{}) }
func (n *noted) Erase(context.Context, string) error             { return n.note("erase", boot.Spec{}) }

// asked returns the calls of the backend since the previous call of asked.
func (n *noted) asked() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	calls := strings.Join(n.calls, " ")
	n.calls = nil
	return calls
}

func onMetal(t *testing.T, change ...func(*simulator.Options)) (*simtest.Site, *noted) {
	t.Helper()
	backend := &noted{fails: map[string]error{}}
	return simtest.New(t, simtest.Rack, append(change, func(o *simulator.Options) { o.Backend = backend })...), backend
}

// up reports that the system of a machine is up. With a backend, the simulator does not do that.
func up(t *testing.T, site *simtest.Site, id string) {
	t.Helper()
	if err := site.DB.Update(func() error { return site.Life.OSReady(site.DB.Machines.Edit(id)) }); err != nil {
		t.Fatal(err)
	}
}

// TestMetalIsAsked verifies that the calls of the backend match the visible states, in the same order.
func TestMetalIsAsked(t *testing.T) {
	g := NewWithT(t)
	site, metal := onMetal(t)
	mustDo(t, site, "alice", "aaaaa1/?op=deploy")
	site.Settle(3 * time.Minute)
	g.Expect(metal.asked()).To(Equal("install off on"))
	up(t, site, "aaaaa1")
	g.Expect(shown(site.Has("one"))).To(Equal("Deployed, on: Deployed"))
	for operation, calls := range map[string]string{"power_off": "off", "power_on": "on"} {
		mustDo(t, site, "alice", "aaaaa1/?op="+operation)
		follow(t, site, "one")
		g.Expect(metal.asked()).To(Equal(calls), operation)
	}
	mustDo(t, site, "admin", "aaaaa1/?op=test")
	follow(t, site, "one")
	g.Expect(metal.asked()).To(BeEmpty(), "tests run from the network, of which metal knows nothing")
	mustDo(t, site, "alice", "aaaaa1/?op=release", "erase", "true")
	follow(t, site, "one")
	g.Expect(metal.asked()).To(Equal("off erase off erase"))
	g.Expect(site.Has("one").Status).To(Equal(status.Ready))
	g.Expect(site.Do("admin", "DELETE", "machines/aaaaa1/").Code).To(Equal(204))
	site.Pass(time.Second)
	g.Expect(metal.asked()).To(Equal("off erase"), "nothing of it is left")
}

// TestMemory verifies that a system that runs from memory is not installed.
func TestMemory(t *testing.T) {
	g := NewWithT(t)
	site, metal := onMetal(t, func(o *simulator.Options) { o.Version = "3.6" })
	mustDo(t, site, "alice", "aaaaa1/?op=deploy", "ephemeral_deploy", "true")
	site.Settle(3 * time.Minute)
	g.Expect(metal.asked()).To(Equal("off on"))
	g.Expect(metal.spec.Ephemeral).To(BeTrue())
	g.Expect(site.Has("one").Netboot).To(BeTrue(), "it starts from the network each time")
	up(t, site, "aaaaa1")
	site.Change("aaaaa1", func(m *inventory.Machine) { m.Disks = nil })
	mustDo(t, site, "alice", "aaaaa1/?op=release", "erase", "true")
	g.Expect(site.Has("one").Status).To(Equal(status.Releasing), "there is no disk to erase")
}

// TestMetalThatFails verifies that a machine whose backend fails gets the backend's message and the status of MAAS.
func TestMetalThatFails(t *testing.T) {
	tests := map[string]struct {
		from    status.Status
		call    string
		request []string
		to      status.Status
		says    string
	}{
		"the installation":             {status.Allocated, "install", []string{"?op=deploy"}, status.FailedDeployment, "curtin: installing ubuntu/jammy failed: EIO"},
		"the reboot":                   {status.Allocated, "off", []string{"?op=deploy"}, status.FailedDeployment, "rebooting: EIO"},
		"the start":                    {status.Allocated, "on", []string{"?op=deploy"}, status.FailedDeployment, "Failed to power on node - EIO"},
		"the power-off":                {status.Deployed, "off", []string{"?op=release"}, status.FailedReleasing, "Failed to power off node - EIO"},
		"the wipe on release":          {status.Deployed, "erase", []string{"?op=release"}, status.FailedReleasing, "EIO"},
		"the erasing of the disks":     {status.Deployed, "erase", []string{"?op=release", "erase", "true"}, status.FailedDiskErasing, "EIO"},
		"the power-off before erasing": {status.Deployed, "off", []string{"?op=release", "erase", "true"}, status.FailedDiskErasing, "EIO"},
	}
	for name, test := range tests {
		t.Run("When the failure is in "+name+", the machine should have its message and status", func(t *testing.T) {
			g := NewWithT(t)
			site, metal := onMetal(t)
			metal.fails[test.call] = errors.New("EIO")
			put(site, "aaaaa1", test.from, map[status.Status]string{status.Deployed: "on", status.Allocated: "off"}[test.from])
			mustDo(t, site, "alice", "aaaaa1/"+test.request[0], test.request[1:]...)
			follow(t, site, "one")
			m := site.Has("one")
			g.Expect(m.Status).To(Equal(test.to))
			g.Expect(m.ErrorDescription).To(Equal(test.says))
			g.Expect(m.Owner).To(Equal("alice"))
		})
	}
	t.Run("When the cleanup of a deleted machine fails, the error should be logged", func(t *testing.T) {
		g := NewWithT(t)
		var log []string
		site, metal := onMetal(t, func(o *simulator.Options) {
			o.Log = func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
		})
		metal.fails["off"] = errors.New("EIO")
		g.Expect(site.Do("admin", "DELETE", "machines/aaaaa1/").Code).To(Equal(204))
		site.Pass(time.Second)
		g.Expect(metal.asked()).To(Equal("off"))
		g.Expect(log).To(Equal([]string{"machine aaaaa1: EIO"}))
	})
}

// TestUnseenPower verifies that a release powers off a machine even if it is already off according to MAAS.
func TestUnseenPower(t *testing.T) {
	g := NewWithT(t)
	site, metal := onMetal(t)
	put(site, "aaaaa1", status.Deployed, "off")
	mustDo(t, site, "alice", "aaaaa1/?op=release")
	seen, _ := follow(t, site, "one")
	g.Expect(seen).To(Equal([]string{"Releasing, unknown: Releasing", "Ready, off: Released"}))
	g.Expect(metal.asked()).To(Equal("off erase"))
}

// TestDeletionTakenBack verifies that a deletion in a failed update has no effect on the machine.
func TestDeletionTakenBack(t *testing.T) {
	g := NewWithT(t)
	site, metal := onMetal(t)
	put(site, "aaaaa1", status.Deployed, "on")
	failure := errors.New("the disk is full")
	g.Expect(site.DB.Update(func() error {
		site.Life.Remove(site.DB.Machines.Edit("aaaaa1"))
		return failure
	})).To(MatchError(failure))
	site.Pass(time.Minute)
	g.Expect(site.Has("one").Status).To(Equal(status.Deployed))
	g.Expect(metal.asked()).To(BeEmpty())
}

// TestRestart verifies that a restart of the simulator starts the machines that were deployed and on, and no others.
func TestRestart(t *testing.T) {
	g := NewWithT(t)
	state := filepath.Join(t.TempDir(), "state")
	site, _ := onMetal(t, func(o *simulator.Options) { o.StateFile = state })
	put(site, "aaaaa1", status.Deployed, "on")
	put(site, "aaaaa2", status.Deployed, "off")
	put(site, "aaaaa3", status.Allocated, "on")
	g.Expect(site.Close()).To(Succeed())
	again, metal := onMetal(t, func(o *simulator.Options) { o.StateFile = state })
	again.Settle(time.Minute)
	g.Expect(metal.asked()).To(Equal("on"))
	g.Expect(metal.spec.SystemID).To(Equal("aaaaa1"))
	g.Expect(again.Has("one")).To(And(HaveField("Status", status.Deployed), HaveField("PowerState", "on")))
}

// TestSpec verifies that the backend gets all data of a machine. The gateway is the one of the link that is set as the
// default gateway.
func TestSpec(t *testing.T) {
	g := NewWithT(t)
	seed := strings.Replace(simtest.Rack, `"cidr": "10.8.0.0/28"`, `"cidr": "10.8.0.0/28", "gateway_ip": "10.8.0.14", "dns_servers": ["10.9.0.2", "10.8.0.13", "none"]`, 1)
	backend := &noted{}
	site := simtest.New(t, seed, func(o *simulator.Options) { o.Backend = backend })
	mustDo(t, site, "alice", "aaaaa3/?op=deploy")
	site.Settle(3 * time.Minute)
	g.Expect(backend.spec).To(And(HaveField("Gateway", netip.MustParseAddr("10.9.0.1")), HaveField("MAC", "52:54:00:00:00:03"),
		HaveField("Nameservers", HaveExactElements(netip.MustParseAddr("10.9.0.2"), netip.MustParseAddr("10.8.0.13"))),
		HaveField("Zone", "north"), HaveField("Domain", "maas"), HaveField("Blank", false), HaveField("Ephemeral", false)))
	mustDo(t, site, "alice", "aaaaa3/?op=release")
	follow(t, site, "three")
	g.Expect(site.Do("admin", "POST", "nodes/aaaaa3/interfaces/eth1/?op=set_default_gateway").Code).To(Equal(200))
	site.Change("aaaaa3", func(m *inventory.Machine) { m.Extra["boot_interface"] = m.Interfaces[1].ID })
	mustDo(t, site, "alice", "aaaaa3/?op=deploy")
	site.Settle(3 * time.Minute)
	g.Expect(backend.spec).To(And(HaveField("Gateway", netip.MustParseAddr("10.8.0.14")), HaveField("MAC", "52:54:00:00:00:13")))
}

// TestGoneInTheMiddle verifies that the step of a deleted machine ends and does not restore the machine.
func TestGoneInTheMiddle(t *testing.T) {
	for name, kind := range map[string]faults.Kind{"breaking": faults.BrokenOnDeploy, "deploying": faults.SlowRelease} {
		t.Run("When a deleted machine was "+name+", it should stay deleted", func(t *testing.T) {
			g := NewWithT(t)
			site, metal := onMetal(t)
			simtest.Fault(t, site.Simulator, faults.Rule{Kind: kind})
			mustDo(t, site, "alice", "aaaaa1/?op=deploy")
			site.Pass(2 * time.Second)
			g.Expect(site.Do("admin", "DELETE", "machines/aaaaa1/").Code).To(Equal(204))
			site.Pass(time.Hour)
			g.Expect(site.Machine("one")).To(BeNil())
			g.Expect(metal.asked()).To(Equal("off erase"))
		})
	}
}

// TestRunWaits verifies that Run runs steps when they are due by the clock.
func TestRunWaits(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.Durations = lifecycle.Durations{Power: time.Minute} })
	put(site, "aaaaa1", status.Deployed, "on")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		site.Run(ctx)
		close(ended)
	}()
	mustDo(t, site, "alice", "aaaaa1/?op=release")
	g.Eventually(site.Clock.HasWaiters).Should(BeTrue())
	site.Clock.Step(59 * time.Second)
	g.Expect(statusOf(site, "one")()).To(Equal(status.Releasing))
	g.Eventually(func() status.Status {
		site.Clock.Step(time.Second)
		return statusOf(site, "one")()
	}).Should(Equal(status.Ready))
	cancel()
	g.Eventually(ended).Should(BeClosed())
}
