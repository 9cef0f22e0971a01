// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func TestHostsOfVirtualMachines(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When MAAS removes the host or changes its LXD project, it should report the remedy":      vmHostChanges,
		"When a host no longer answers, it should report that and not block deletions":            vmHostDead,
		"When a host is removed from MAAS with its machines, both losses should be reported":      vmHostRemoved,
		"When a virtual machine is deleted in LXD, it should make MAAS notice":                    vmLostInLXD,
		"When an unreachable host answers again, it should no longer be selected last":            vmHostAnswersAgain,
		"When a host restarts, its machines should recover without replacement":                   vmHostRestarts,
		"When a host is drained after the list was read, nothing more should be composed there":   vmHostDrained,
		"When a host was removed from MAAS after the list was read, another host should be tried": vmHostLeft,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func vmHostChanges(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	w.Expect(w.DB.Update(func() error {
		w.DB.VMHosts.Edit(100).Parameters = map[string]any{"project": "renamed"}
		return nil
	})).To(Succeed())
	w.reconcile("m", 20*time.Minute)
	w.expect("m", "LXDHostSelected False ProjectNotFound", `uses LXD project "renamed" on host h1, but the virtual machine is in project "nodes"`)
	w.expect("m", "Ready True Ready", "")
	w.dropHost(100)
	w.reconcile("m", 20*time.Minute)
	w.expect("m", "LXDHostSelected False HostUnavailable", "MAAS no longer has LXD host h1")
	w.addHost(100, lxdHost{name: "h1"})
	w.reconcile("m", 20*time.Minute)
	w.expect("m", "LXDHostSelected True HostSelected", "h1")
}

// on makes systemID the MAAS machine on which an LXD host runs.
func (w *world) on(host int, systemID string) {
	w.t.Helper()
	w.Expect(w.DB.Update(func() error {
		w.DB.VMHosts.Edit(host).HostSystemID = systemID
		return nil
	})).To(Succeed())
}

func vmHostDead(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", cores: 64, memory: 1 << 18}, lxdHost{name: "h2"})
	w.on(100, "aaaaa3")
	w.addVM("m")
	w.addVM("n")
	w.until("Ready True Ready", "m", "n")
	for _, name := range []string{"m", "n"} {
		w.Expect(w.machine(name).Status.LXDHost).To(BeElementOf("h1", "h2"))
	}
	onH1, onH2 := "m", "n"
	if w.machine("m").Status.LXDHost == "h2" {
		onH1, onH2 = onH2, onH1
	}
	simtest.HostAway(t, w.Simulator, "h1")
	w.wrote()
	w.reconcile(onH1, 3*time.Minute)
	w.reconcile(onH2, time.Second)
	w.expect(onH1, "LXDHostSelected False HostUnavailable", "LXD host h1 does not answer MAAS (cannot refresh VM host 100: ")
	w.expect(onH1, "LXDHostSelected False HostUnavailable", "Failed to connect to the LXD REST API")
	w.expect(onH1, "LXDHostSelected False HostUnavailable", "(aaaaa3) is ")
	w.expect(onH1, "Ready True Ready", "")
	w.expect(onH2, "LXDHostSelected True HostSelected", "")
	settled := w.machine(onH1).ResourceVersion
	w.passes(onH1, 3)
	w.Expect(w.machine(onH1).ResourceVersion).To(Equal(settled), "nothing new, nothing written")
	w.Expect(w.wrote()).To(Equal([]string{"refresh"}), "the host is asked about once")

	w.addVM("next")
	w.composing("next")
	w.Expect(w.machine("next").Status.LXDHost).To(Equal("h2"))
	w.Expect(w.count("compose")).To(Equal(1), "the dead host is not tried first")
	w.remove(onH1)
	w.reconcile(onH1, time.Second)
	w.Expect(w.gone(onH1)).To(BeTrue(), "a dead host holds no Machine")
}

func vmHostRemoved(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"}, lxdHost{name: "h2"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	w.Expect(w.DB.Update(func() error {
		w.DB.Machines.Delete(*w.machine("m").Spec.SystemID)
		w.DB.VMHosts.Delete(100)
		return nil
	})).To(Succeed())
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "LXDVMDeployed Unknown MachineNotFound", "")
	w.expect("m", "LXDHostSelected False HostUnavailable", "MAAS no longer has LXD host h1")
	w.Expect(w.machine("m").Status.FailureMessage).NotTo(BeNil(), "Cluster API may replace it")
	w.remove("m")
	w.reconcile("m", time.Second)
	w.Expect(w.gone("m")).To(BeTrue())
	w.addVM("next")
	w.until("Ready True Ready", "next")
	w.Expect(w.machine("next").Status.LXDHost).To(Equal("h2"))
}

func vmLostInLXD(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	simtest.LoseVM(t, w.Simulator, *w.machine("m").Spec.SystemID)
	w.reconcile("m", 3*time.Minute)
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "LXDVMDeployed Unknown MachineNotFound", "deleted there")
	w.expect("m", "LXDHostSelected True HostSelected", "h1")
	w.Expect(w.machine("m").Status.FailureMessage).NotTo(BeNil(), "Cluster API may replace it")
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
}

func vmHostRestarts(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	id := *w.machine("m").Spec.SystemID
	back := simtest.HostAway(t, w.Simulator, "h1")
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "LXDHostSelected False HostUnavailable", "bring it back")
	back()
	w.reconcile("m", 3*time.Minute)
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "LXDHostSelected True HostSelected", "h1")
	w.expect("m", "LXDVMDeployed True MachineDeployed", "")
	w.Expect(*w.machine("m").Spec.SystemID).To(Equal(id))
	w.Expect(w.machine("m").Status.FailureMessage).To(BeNil())
}

func vmHostAnswersAgain(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", cores: 64, memory: 1 << 18}, lxdHost{name: "h2"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h1"), "it has more left")
	back := simtest.HostAway(t, w.Simulator, "h1")
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "LXDHostSelected False HostUnavailable", "does not answer MAAS")
	back()
	simtest.LoseVM(t, w.Simulator, *w.machine("m").Spec.SystemID)
	w.reconcile("m", 6*time.Minute)
	w.reconcile("m", time.Minute)
	w.expect("m", "LXDVMDeployed Unknown MachineNotFound", "deleted there")
	w.leave("m")
	w.addVM("next")
	w.composing("next")
	w.Expect(w.machine("next").Status.LXDHost).To(Equal("h1"))
}

func vmHostDrained(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", cores: 32}, lxdHost{name: "h2"})
	drain := func(host string) {
		w.Expect(w.ChangeVMHost(host, func(h *inventory.VMHost) { h.Tags = append(h.Tags, maas.DrainTag) })).To(BeTrue())
	}
	w.addVM("first", func(spec *infrav1.MaasMachineSpec) { spec.LXDConfig.VMHost = "h2" })
	w.composing("first")
	drain("h1")
	w.addVM("m")
	w.composing("m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h2"))
	w.Expect(w.count("compose")).To(Equal(2))
	drain("h2")
	w.addVM("n")
	w.passes("n", 1)
	w.expect("n", "LXDHostSelected False HostUnavailable", "2 are being drained")
	w.Expect(w.count("compose")).To(Equal(2))
}

func vmHostLeft(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", cores: 32}, lxdHost{name: "h2"})
	w.addVM("first", func(spec *infrav1.MaasMachineSpec) { spec.LXDConfig.VMHost = "h2" })
	w.composing("first")
	w.dropHost(100)
	w.addVM("m")
	w.composing("m")
	w.Expect(w.machine("m").Status.LXDHost).To(Equal("h2"))
	w.Expect(w.count("compose")).To(Equal(2), "a host that is gone is not asked")
}
