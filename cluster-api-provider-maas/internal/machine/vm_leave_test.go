// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func vmDeletedEarly(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	vm := w.composing("m")
	w.edit(vm.SystemID, func(m *inventory.Machine) { m.Status = status.Commissioning })
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
}

func vmDeletedInDoubt(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	w.before = cutComposing
	w.reconcile("m", time.Second)
	w.reconcile("m", time.Second)
	w.before = nil
	w.remove("m")
	w.reconcile("m", 20*time.Second)
	w.expect("m", "Deleting True AllocationUncertain", "whether it turns up")
	// The virtual machine appears in MAAS late.
	place := lxd.PlacementOf(w.machine("m"))
	w.Expect(w.DB.Update(func() error {
		w.DB.Machines.Put(&inventory.Machine{ID: 999, SystemID: "late01", Hostname: place.Hostname, PowerType: "lxd", Status: status.Commissioning, ZoneID: 1, PodID: &place.HostID,
			Extra: map[string]any{}, Token: w.DB.NewToken()})
		return nil
	})).To(Succeed())
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty())
}

func vmDeletedOutside(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	id := *w.machine("m").Spec.SystemID
	w.Expect(w.DB.Update(func() error {
		w.DB.Machines.Delete(id)
		return nil
	})).To(Succeed())
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "LXDVMDeployed Unknown MachineNotFound", "deleted there")
	w.Expect(w.machine("m").Status.FailureMessage).NotTo(BeNil(), "Cluster API may replace it")
	w.leave("m")
}

func vmDeletedOutsideEarly(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	vm := w.composing("m")
	w.Expect(w.DB.Update(func() error {
		w.DB.Machines.Delete(vm.SystemID)
		return nil
	})).To(Succeed())
	w.until("Ready True Ready", "m")
	w.Expect(w.machine("m").Status.Attempts).To(BeEquivalentTo(1))
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("is gone: it was deleted in MAAS or in LXD"))
}

func vmTaken(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	vm := w.composing("m")
	w.edit(vm.SystemID, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Allocated, "bob", "his" })
	w.until("Ready True Ready", "m")
	w.Expect(*w.machine("m").Spec.SystemID).NotTo(Equal(vm.SystemID))
	w.leave("m")
	w.Expect(w.Machine(vm.SystemID)).To(HaveField("Owner", "bob"), "it is his by now")
}

func vmReleasedOutside(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.addVM("m")
	w.until("Ready True Ready", "m")
	w.edit(*w.machine("m").Spec.SystemID, func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName, m.Annotations, m.PowerState = status.Ready, "", "", nil, "off"
	})
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineTerminatedReason", "released outside Cluster API")
	w.leave("m")
	w.Expect(w.vms()).To(BeEmpty(), "nobody has it, and it was made for this MaasMachine")
}

func vmHandedOver(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1"})
	w.owned()
	w.look()
	w.addVM("m")
	w.until("Ready True Ready", "m")
	id := *w.machine("m").Spec.SystemID
	accept := simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: "machine.delete", Machine: id, Status: 503, Message: "the host does not answer"})
	w.end("m")
	w.passes("m", 1)
	w.expect("m", "Deleting True MAASUnavailable", "the host does not answer")
	w.reconcile("m", 11*time.Minute)
	w.reconcile("m", time.Minute)
	w.Expect(w.gone("m")).To(BeTrue(), "a dead host must not hold a Machine")
	w.look()
	w.notReleased("the host does not answer")
	accept()
	w.Eventually(func() []*inventory.Machine {
		w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
		w.look()
		return w.vms()
	}, patience, "20ms").Should(BeEmpty())
}
