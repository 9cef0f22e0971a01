// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func TestVirtualMachines(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a virtual machine is requested, it should be composed, deployed and finally deleted":                   vmLives,
		"When the MaasMachine uses the upstream fields, its provider ID should have the upstream format":             vmOfUpstream,
		"When the cluster has defaults, they should apply to fields that the machine does not set":                   vmDefaults,
		"When the answer to compose is lost, the machine should be found by its name":                                vmAnswerLost,
		"When compose has no result, it should be called again after a while":                                        vmNeverMade,
		"When commissioning fails, another host should be tried and the failed machine should be deleted":            vmCommissioningFails,
		"When commissioning fails on every host, it should report the MAAS error and stop composing":                 vmAttemptsExhausted,
		"When commissioning does not end, another host should be tried":                                              vmCommissioningHangs,
		"When a deployment fails, the machine should be deleted and another one composed":                            vmDeploymentFails,
		"When a host rejects compose, the next host should be tried":                                                 vmHostRefuses,
		"When a storage pool fills up before MAAS reports it, the next host should be tried":                         vmStoreFull,
		"When every host rejects compose, it should report the MAAS error":                                           vmAllHostsRefuse,
		"When the key does not belong to an administrator, it should report that":                                    vmNeedsAdmin,
		"When no host fits, it should report how many hosts lack what":                                               vmNoHost,
		"When a MaasMachine is deleted before it is allocated, its virtual machine should be deleted in MAAS":        vmDeletedEarly,
		"When the MaasMachine is deleted during compose, it should wait for a machine that may still appear":         vmDeletedInDoubt,
		"When a user deletes the virtual machine in MAAS, it should report that":                                     vmDeletedOutside,
		"When a user deletes the virtual machine before it is allocated, another one should be composed":             vmDeletedOutsideEarly,
		"When another user allocates the virtual machine first, it should not be touched":                            vmTaken,
		"When a user releases a virtual machine in MAAS, it should still be deleted with its MaasMachine":            vmReleasedOutside,
		"When MAAS does not delete a virtual machine, its release should be delegated to the MaasCluster":            vmHandedOver,
		"When no bare-metal machine fits, MAAS should not compose one, and machines of others should not be touched": vmNotForMetal,
		"When MAAS gets its first VM host and composes for bare metal, an event should report it":                    vmForMetalTold,
		"When a virtual machine needs a static address, it should be composed on the subnet of the address":          vmStatic,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func vmLives(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", zone: "north"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	m := w.machine("m")
	vm := w.Machine(*m.Spec.SystemID)
	w.Expect(*m.Spec.ProviderID).To(Equal("maas-lxd:///north/" + vm.SystemID))
	w.Expect(vm.Hostname).To(Equal(lxd.Hostname(string(m.UID), string(w.cluster().UID), 0)))
	w.Expect(vm.CPUCount).To(Equal(2))
	w.Expect(vm.Memory).To(BeEquivalentTo(4096))
	w.Expect(vm.Disks[0].Size).To(BeEquivalentTo(60e9), "as upstream")
	w.Expect(m.Status).To(And(HaveField("ProvisioningMode", infrav1.ProvisioningModeLXD), HaveField("LXDHost", "h1"), HaveField("LXDProject", "nodes"),
		HaveField("VMResourceUsage", HaveValue(Equal(infrav1.VMResourceUsage{AllocatedCores: ptr.To(2), AllocatedMemory: ptr.To(4096), AllocatedDisk: ptr.To(60)})))))
	w.expect("m", "LXDHostSelected True HostSelected", "h1 in zone north")
	w.expect("m", "LXDResourcesAllocated True HostSelected", "2 cores, 4096 MiB of memory, a disk of 60 GB")
	w.expect("m", "LXDVMCreated True VMCreated", vm.SystemID)
	w.expect("m", "LXDVMDeployed True MachineDeployed", "")
	before := m.ResourceVersion
	w.passes("m", 3)
	w.Expect(w.machine("m").ResourceVersion).To(Equal(before), "a settled machine writes nothing")
	w.wrote()
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
	w.Expect(w.wrote()).To(Equal([]string{""}), "one DELETE, and no release after which somebody else could get it")
}

func vmOfUpstream(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", LXD: &infrav1.LXDConfig{Enabled: ptr.To(true), VMConfig: &infrav1.VMConfig{DiskSize: ptr.To(80),
		InterfaceLinkModes: map[string]string{"eth0": "dhcp"}, AutoStart: ptr.To(false)}}})
	w.until("Ready True Ready", "m")
	id := *w.machine("m").Spec.SystemID
	w.Expect(*w.machine("m").Spec.ProviderID).To(Equal("maas:///default/" + id))
	w.Expect(w.Machine(id).Disks[0].Size).To(BeEquivalentTo(80e9))
	w.expect("m", "LXDResourcesAllocated True HostSelected", "interfaceLinkModes has no effect")
	w.expect("m", "LXDResourcesAllocated True HostSelected", "autoStart false has no effect")
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
}

func vmDefaults(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", project: "other"}, lxdHost{name: "h2", project: "own", stores: map[string]int64{"default": 1e12, "nvme": 1e12}})
	cluster := w.cluster()
	cluster.Spec.LXDConfig = &infrav1.LXDHostConfig{LXDMachineConfig: infrav1.LXDMachineConfig{Project: "own",
		Storage: &infrav1.LXDStorage{Pool: "nvme", Size: ptr.To(intstr.FromString("20GB"))}}}
	w.Expect(w.client.Update(t.Context(), cluster)).To(Succeed())
	w.addVM("m")
	w.composing("m")
	w.Expect(w.sent("compose").Get("storage")).To(Equal("root:20(nvme)"))
	w.Expect(lxd.PlacementOf(w.machine("m"))).To(And(HaveField("Host", "h2"), HaveField("Project", "own")))
	w.addVM("own", func(spec *infrav1.MaasMachineSpec) {
		spec.LXDConfig.Project, spec.LXDConfig.Storage = "other", &infrav1.LXDStorage{Size: ptr.To(intstr.FromInt32(30)), Pool: "default"}
	})
	w.composing("own")
	w.Expect(lxd.PlacementOf(w.machine("own"))).To(And(HaveField("Host", "h1"), HaveField("DiskGB", 30)))
}

func vmAnswerLost(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
	w.addVM("m")
	w.after = cutComposing
	w.reconcile("m", time.Second)
	w.reconcile("m", time.Second)
	w.Expect(w.vms()).To(HaveLen(1))
	w.after = nil
	w.restart()
	w.until("Ready True Ready", "m")
	w.Expect(w.vms()).To(HaveLen(1))
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
}

// cutComposing cuts the connection for the call that composes a machine.
func cutComposing(op string) error {
	if op == "compose" {
		return errCut
	}
	return nil
}

func vmNeverMade(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	w.before = cutComposing
	w.reconcile("m", time.Second)
	w.reconcile("m", time.Second)
	w.before = nil
	w.reconcile("m", 30*time.Second)
	w.expect("m", "Ready False AllocationUncertain", "waiting to see whether it turns up")
	w.Expect(w.count("compose")).To(Equal(1))
	w.until("Ready True Ready", "m")
	w.Expect(w.vms()).To(HaveLen(1))
}

func vmCommissioningFails(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
	simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.CommissionFails, Machine: "vm-*", Count: 1})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h2"), "the other host")
	w.Expect(w.vms()).To(HaveLen(1), "the failed one was deleted")
	w.Expect(w.vms()[0].Hostname).To(And(HavePrefix("vm-"+string(w.machine("m").UID)), HaveSuffix("-2")))
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("VMCreationFailed "))
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
}

func vmAttemptsExhausted(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
	simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.CommissionFails, Machine: "vm-*"})
	w.addVM("m")
	w.Eventually(func() *string {
		w.pass("m")
		return w.machine("m").Status.FailureMessage
	}, patience, "20ms").Should(HaveValue(ContainSubstring("3 virtual machines failed")))
	w.expect("m", "LXDVMCreated False VMCreationFailed", "Failed commissioning on host")
	w.expect("m", "Ready False VMCreationFailed", "no other one is composed")
	w.wrote()
	w.passes("m", 5)
	w.Expect(w.wrote()).To(BeEmpty())
	w.Expect(w.vms()).To(HaveLen(1), "the last one is there for people to look at")
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
}

func vmCommissioningHangs(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
	w.addVM("m")
	vm := w.composing("m")
	w.edit(vm.SystemID, func(m *inventory.Machine) { m.Status = status.Commissioning })
	w.reconcile("m", 15*time.Second)
	w.expect("m", "LXDVMCreated False VMCommissioning", "Commissioning on host h1")
	w.reconcile("m", 31*time.Minute)
	w.expect("m", "LXDVMCreated False VMCreationFailed", "for more than 30m")
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h2"))
	w.Expect(w.Machine(vm.SystemID)).To(BeNil())
}

func vmDeploymentFails(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
	simtest.FailDeployments(t, w.Simulator, "vm-*", 1)
	w.addVM("m")
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h2"))
	w.Expect(w.vms()).To(HaveLen(1))
	w.Expect(w.wrote()).NotTo(ContainElement("release"), "somebody else could get it then")
	simtest.FailDeployments(t, w.Simulator, "vm-*", 3)
	w.addVM("n")
	w.until("LXDVMDeployed False VMDeploymentFailed", "n")
	w.expect("n", "Ready False DeployAttemptsExhausted", "deployments failed on 3 machines")
	w.leave("m", "n")
	w.Expect(w.vms()).To(BeEmpty())
}

func vmHostRefuses(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", cores: 32}, lxdHost{name: "h2"})
	simtest.HostAway(t, w.Simulator, "h1")
	w.addVM("m")
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h2"))
}

func vmStoreFull(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", cores: 32}, lxdHost{name: "h2"})
	w.addVM("first", func(spec *infrav1.MaasMachineSpec) { spec.LXDConfig.VMHost = "h2" })
	w.composing("first")
	w.ChangeVMHost("h1", func(h *inventory.VMHost) { h.StoragePools[0].Total = 1e9 })
	w.addVM("m")
	w.composing("m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h2"))
	w.Expect(w.count("compose")).To(Equal(3), "MAAS was asked for h1 before it told that it is full")
	w.addVM("n", func(spec *infrav1.MaasMachineSpec) { spec.LXDConfig.VMHost = "h1" })
	w.reconcile("n", time.Minute)
	w.expect("n", "LXDResourcesAllocated False InsufficientResources", "1 lacks 60 GB of disk")
}

func vmAllHostsRefuse(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
	accept := simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: "vm-host.compose", Status: 503, Message: "Unable to compose machine: storage is read-only"})
	w.addVM("m")
	w.passes("m", 2)
	w.expect("m", "LXDVMCreated False VMCreationFailed", "host h1: cannot compose a VM on VM host 100: Unable to compose machine: storage is read-only")
	w.expect("m", "Ready False VMCreationFailed", "host h2")
	w.Expect(lxd.PlacementOf(w.machine("m"))).To(BeNil(), "nothing is reserved where nothing is made")
	accept()
	w.until("Ready True Ready", "m")
}

func vmNeedsAdmin(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.credentials(w.Key("alice"))
	w.restart()
	w.addVM("m")
	w.passes("m", 2)
	w.expect("m", "Ready False MAASForbidden", "API key of a MAAS administrator")
	w.Expect(lxd.PlacementOf(w.machine("m"))).To(BeNil())
	w.leave("m")
}

func vmNoHost(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", zone: "north", memory: 8192}, lxdHost{name: "h2", zone: "north", memory: 4096}, lxdHost{name: "h3", zone: "south"})
	w.addVM("m", func(spec *infrav1.MaasMachineSpec) {
		spec.MinMemory, spec.FailureDomain = ptr.To(16384), ptr.To("north")
	})
	w.passes("m", 2)
	w.expect("m", "LXDResourcesAllocated False InsufficientResources", "in zone north; 3 hosts: 2 lack 16 GiB of memory, 1 is in zone south")
	w.expect("m", "LXDHostSelected False InsufficientResources", "")
	w.addHost(103, lxdHost{name: "h4", zone: "north"})
	w.until("Ready True Ready", "m")
	w.addVM("n", func(spec *infrav1.MaasMachineSpec) { spec.LXDConfig.VMHost = "h9" })
	w.passes("n", 2)
	w.expect("n", "LXDHostSelected False HostUnavailable", "there are: h1, h2, h3, h4")
	w.addVM("p", func(spec *infrav1.MaasMachineSpec) { spec.LXDConfig.Profile = "gpu" })
	w.passes("p", 2)
	w.expect("p", "LXDHostSelected False ProfileNotFound", "profile maas, or default")
	w.addVM("q", func(spec *infrav1.MaasMachineSpec) { spec.LXDConfig.Project = "none" })
	w.passes("q", 2)
	w.expect("q", "LXDHostSelected False ProjectNotFound", `4 are in LXD project "nodes"`)
}

func vmNotForMetal(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("vm")
	vm := w.composing("vm")
	w.tick()
	w.edit("aaaaa5", func(m *inventory.Machine) { m.Status, m.Owner = status.Deployed, "bob" })
	names := []string{"one", "two", "three", "four", "six"}
	for _, name := range names {
		w.add(name, infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024)})
	}
	w.until("Ready True Ready", names[:4]...)
	w.reconcile("six", time.Minute)
	w.expect("six", "Ready False NoCapacity", "")
	w.Expect(w.vms()).To(HaveLen(1))
	w.Expect(w.Machines()).To(HaveLen(6), "MAAS composed none of its own accord")
	w.Expect(w.Machine(vm.SystemID).Owner).To(BeEmpty(), "it was made for another one")
	w.until("Ready True Ready", "vm")
	w.Expect(*w.machine("vm").Spec.SystemID).To(Equal(vm.SystemID))
}

func vmForMetalTold(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg)
	for _, m := range w.Machines()[1:] {
		w.edit(m.SystemID, func(m *inventory.Machine) { m.Status, m.Owner = status.Deployed, "bob" })
	}
	small := infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024)}
	w.add("one", small)
	w.reconcile("one", time.Second)
	w.reconcile("one", time.Second)
	w.Expect(strings.Join(w.told(), "\n")).NotTo(ContainSubstring("VirtualMachineAllocated "))
	w.addHost(100, lxdHost{name: "h1"})
	w.add("two", small)
	w.reconcile("two", time.Second)
	w.reconcile("two", time.Second)
	w.Expect(strings.Join(w.told(), "\n")).To(And(ContainSubstring("VirtualMachineAllocated "), ContainSubstring("on VM host h1")))
	w.leave("two")
	w.Expect(w.Machines()).To(HaveLen(5), "MAAS does away with what it composed so")
}

func vmStatic(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.Expect(w.DB.Update(func() error {
		w.DB.VMHosts.Edit(100).HostSystemID = "aaaaa3"
		return nil
	})).To(Succeed())
	w.addVM("m", func(spec *infrav1.MaasMachineSpec) {
		spec.StaticIP = &infrav1.StaticIPConfig{IP: "10.9.0.77", CIDR: "10.9.0.0/24"}
	})
	w.until("Ready True Ready", "m")
	w.Expect(w.sent("compose").Get("interfaces")).To(Equal("eth0:subnet=1"))
	w.Expect(w.machine("m").Status.Addresses).To(ContainElement(HaveField("Address", "10.9.0.77")))
	w.leave("m")
	w.Expect(slices.ContainsFunc(w.Machines(), func(m *inventory.Machine) bool { return lxd.UIDOf(m.Hostname) != "" })).To(BeFalse())
}
