// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// withVMs returns a site whose LXD host has two VMs, both deployed by alice. One of them is off.
func withVMs(t *testing.T) *simtest.Site {
	t.Helper()
	site := simtest.New(t, simtest.WithVMHost)
	for _, name := range []string{"vm1", "vm2"} {
		if answer := site.Do("admin", "POST", "vm-hosts/7/?op=compose", "hostname", name, "skip_commissioning", "true"); answer.Code != 200 {
			t.Fatal(answer.Body)
		}
		mustDo(t, site, "alice", site.Has(name).SystemID+"/?op=deploy")
		follow(t, site, name)
	}
	mustDo(t, site, "alice", site.Has("vm2").SystemID+"/?op=power_off")
	follow(t, site, "vm2")
	return site
}

// TestHostGoes verifies that the VMs of a disconnected host lose their power, which MAAS notices at its next query. VMs
// that ran before start again with the host.
func TestHostGoes(t *testing.T) {
	g := NewWithT(t)
	site := withVMs(t)
	back := simtest.HostAway(t, site.Simulator, "lxd-1")
	site.Settle(time.Minute)
	g.Expect(site.Has("vm1").PowerState).To(Equal("error"))
	g.Expect(site.Has("vm2").PowerState).To(Equal("off"), "it had no power to lose")
	for _, operation := range []string{"?op=power_on", "?op=power_off"} {
		answer := site.Do("alice", "POST", "machines/"+site.Has("vm1").SystemID+"/"+operation)
		g.Expect(answer.Code).To(Equal(503))
		g.Expect(answer.Body).To(HaveSuffix("node - VM Host 7: Failed to connect to the LXD REST API."))
	}
	mustDo(t, site, "alice", site.Has("vm1").SystemID+"/?op=release")
	follow(t, site, "vm1")
	g.Expect(site.Has("vm1").Status).To(Equal(status.FailedReleasing))
	site.Change(site.Has("vm1").SystemID, func(m *inventory.Machine) { m.Status = status.Deployed })
	back()
	site.Settle(time.Minute)
	g.Expect(site.Has("vm1").PowerState).To(Equal("on"))
	g.Expect(site.Has("vm2").PowerState).To(Equal("off"))
}

// TestHostGoesWhileVMsAreBusy verifies that running operations of the VMs stop, and end with their timeout.
func TestHostGoesWhileVMsAreBusy(t *testing.T) {
	g := NewWithT(t)
	site := withVMs(t)
	vm := site.Has("vm2").SystemID
	mustDo(t, site, "alice", vm+"/?op=release")
	follow(t, site, "vm2")
	mustDo(t, site, "alice", vm+"/?op=deploy")
	site.Pass(2 * time.Second)
	simtest.HostAway(t, site.Simulator, "lxd-1")
	site.Settle(30 * time.Minute)
	g.Expect(site.Has("vm2").Status).To(Equal(status.Deploying))
	site.Settle(time.Hour)
	g.Expect(site.Has("vm2").Status).To(Equal(status.FailedDeployment))
}

// TestLostVM verifies that a VM that is deleted in LXD has no power and cannot be powered on, whether or not its host
// is connected.
func TestLostVM(t *testing.T) {
	g := NewWithT(t)
	site := withVMs(t)
	simtest.LoseVM(t, site.Simulator, "vm1")
	site.Settle(time.Minute)
	vm := site.Has("vm1").SystemID
	g.Expect(site.Has("vm1").PowerState).To(Equal("error"))
	answer := site.Do("alice", "GET", "machines/"+vm+"/?op=query_power_state")
	g.Expect(answer.Code).To(Equal(503))
	g.Expect(answer.Body).To(Equal("Failed to power query node - Pod 7: LXD VM vm1 not found."))
	back := simtest.HostAway(t, site.Simulator, "lxd-1")
	site.Settle(time.Minute)
	back()
	site.Settle(time.Minute)
	g.Expect(site.Has("vm1").PowerState).To(Equal("error"), "a host that returns does not bring it back")
	site.Change(vm, func(m *inventory.Machine) { m.PowerState = "on" })
	mustDo(t, site, "alice", vm+"/?op=release")
	follow(t, site, "vm1")
	g.Expect(site.Has("vm1").Status).To(Equal(status.FailedReleasing))
}

// TestMachineUnderAHost verifies that the VMs of a deployed VM host follow the power of its machine. The host has the
// resources of the machine.
func TestMachineUnderAHost(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	mustDo(t, site, "admin", "aaaaa3/?op=deploy", "register_vmhost", "true", "agent_name", "mine")
	follow(t, site, "three")
	g.Expect(site.Has("three")).To(And(HaveField("Status", status.Deployed), HaveField("AgentName", "maas-kvm-pod")))
	var host *inventory.VMHost
	g.Expect(site.DB.View(func() error { host = site.DB.VMHostByName("three"); return nil })).To(Succeed())
	g.Expect(host).To(And(HaveField("HostSystemID", "aaaaa3"), HaveField("Cores", 8), HaveField("Memory", int64(16384)), HaveField("Storage", int64(1120e9)),
		HaveField("ZoneID", 2), HaveField("PoolID", 1), HaveField("Architectures", ConsistOf("amd64/generic")), HaveField("Type", "lxd"),
		HaveField("Tags", ConsistOf("pod-console-logging"))))
	g.Expect(host.StoragePools).To(HaveExactElements(And(HaveField("Total", int64(1120e9)), HaveField("Default", true))))
	g.Expect(host.Parameters).To(HaveKeyWithValue("power_address", "10.9.0.251:8443"))
	for _, capability := range []string{"composable", "over_commit"} {
		g.Expect(host.Can(capability)).To(BeTrue())
	}

	g.Expect(site.Do("admin", "POST", "vm-hosts/1/?op=compose", "hostname", "vm", "skip_commissioning", "true").Code).To(Equal(200))
	mustDo(t, site, "alice", site.Has("vm").SystemID+"/?op=deploy")
	follow(t, site, "vm")
	mustDo(t, site, "admin", "aaaaa3/?op=power_off")
	follow(t, site, "three")
	site.Settle(time.Minute)
	g.Expect(site.Has("vm").PowerState).To(Equal("error"))
	g.Expect(site.Do("admin", "POST", "vm-hosts/1/?op=refresh").Code).To(Equal(503))
	mustDo(t, site, "admin", "aaaaa3/?op=power_on")
	follow(t, site, "three")
	site.Settle(time.Minute)
	g.Expect(site.Has("vm").PowerState).To(Equal("on"))
	g.Expect(site.Do("admin", "POST", "vm-hosts/1/?op=refresh").Code).To(Equal(200))
}

// TestSecondHostOfAName verifies that the deployment of a VM host with an existing name fails, and does not change the
// existing host.
func TestSecondHostOfAName(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.WithVMHost)
	site.ChangeVMHost("lxd-1", func(h *inventory.VMHost) { h.Name = "three" })
	mustDo(t, site, "admin", "aaaaa3/?op=deploy", "install_kvm", "true")
	follow(t, site, "three")
	g.Expect(site.Has("three")).To(And(HaveField("Status", status.FailedDeployment), HaveField("Owner", "admin"),
		HaveField("ErrorDescription", "Internal error while creating VM host. (See regiond.log for details.)")))
	g.Expect(site.DB.View(func() error {
		g.Expect(site.DB.VMHosts.All()).To(HaveExactElements(HaveField("HostSystemID", "")))
		return nil
	})).To(Succeed())
}
