// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func takenAway(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName, m.Annotations = status.Ready, "", "", nil })
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineTerminatedReason", "it was released outside Cluster API")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
	w.Expect(w.machine("m").Status.Initialization.Provisioned).To(HaveValue(BeTrue()), "the contract: it never flips back")

	w.add("next", infrav1.MaasMachineSpec{})
	w.passes("next", 3)
	w.Expect(w.machine("next").Spec.SystemID).To(HaveValue(Equal("bbbbbb")), "the first one's Node is still there")
	w.add("third", infrav1.MaasMachineSpec{})
	w.passes("third", 2)
	w.expect("third", "Ready False NoCapacity", "another MaasMachine of the namespace still names them")
	w.remove("third")
	w.remove("next")
	w.passes("third", 1)
	w.passes("next", 3)
	w.Expect(w.gone("next")).To(BeTrue())

	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = status.Deployed, "provider", "on" })
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.Machine("aaaaaa").Status).To(Equal(status.Deployed), "somebody else's by now")

	w.add("deleted", infrav1.MaasMachineSpec{})
	w.passes("deleted", 3)
	w.Expect(w.DB.Update(func() error {
		w.DB.Machines.Delete("bbbbbb")
		return nil
	})).To(Succeed())
	w.reconcile("deleted", 3*time.Minute)
	w.expect("deleted", "MachineDeployed Unknown MachineNotFound", "it was deleted there")
	w.remove("deleted")
	w.passes("deleted", 1)
	w.Expect(w.gone("deleted")).To(BeTrue(), "a 404 is success")
}

func brokenStays(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.Change("aaaaaa", func(m *inventory.Machine) { w.Expect(w.Life.MarkBroken(m, "admin", "fan dead")).To(Succeed()) })
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachineBroken", "fan dead")
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.Machine("aaaaaa").Status).To(Equal(status.Broken))
}

func powersOn(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	off := func(m *inventory.Machine) { m.PowerState = "off" }
	w.edit("aaaaaa", off)
	w.reconcile("m", 3*time.Minute)
	w.expect("m", "Ready False MachinePoweredOff", "switched off")
	w.edit("aaaaaa", off)
	w.passes("m", 4)
	w.Expect(w.count("power_on")).To(Equal(1))
	w.reconcile("m", 6*time.Minute)
	w.Expect(w.count("power_on")).To(Equal(2))
	for _, power := range []string{"unknown", "error"} {
		w.edit("aaaaaa", func(m *inventory.Machine) { m.PowerState = power })
		w.reconcile("m", 3*time.Minute)
		w.expect("m", "Ready True Ready", "")
	}
}

func deletions(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.credentials("consumer:token:wrongsecret")
	w.remove("m")
	w.passes("m", 3)
	w.Expect(w.gone("m")).To(BeFalse(), "a bad credential never removes a finalizer")
	w.expect("m", "Deleting True MAASUnauthorized", "valid API key")

	w.add("untouched", infrav1.MaasMachineSpec{})
	w.passes("untouched", 1)
	w.remove("untouched")
	w.passes("untouched", 1)
	w.Expect(w.gone("untouched")).To(BeTrue(), "MAAS was never asked for a machine")

	w.credentials(w.Key("provider"))
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status = status.RescueMode })
	w.passes("m", 1)
	w.expect("m", "Deleting True MachineReleaseBlocked", "end the state in MAAS")
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status = status.FailedReleasing })
	frozen(w, "aaaaaa")
	w.passes("m", 2)
	w.expect("m", "Deleting True MachineReleaseFailed", "check its power and console in MAAS")
	w.after = nil
	w.reconcile("m", 6*time.Minute)
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.held()).To(BeEmpty())
}

func deletedInDoubt(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	w.refuse("machines.allocate", "", http.StatusGatewayTimeout, "")
	w.reconcile("m", 0)
	key := maas.AllocationKey(string(w.machine("m").UID))
	w.remove("m")
	w.passes("m", 2)
	w.Expect(w.gone("m")).To(BeFalse())
	w.expect("m", "Deleting True AllocationUncertain", "whether one turns up")
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Allocated, "provider", key })
	w.passes("m", 1)
	w.Expect(w.held()).To(BeEmpty())
	w.reconcile("m", time.Minute)
	w.Expect(w.gone("m")).To(BeTrue())
}

func pauses(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"})
	w.add("m", infrav1.MaasMachineSpec{})
	cluster := &clusterv1.Cluster{}
	w.get("demo", cluster)
	cluster.Spec.Paused = ptr.To(true)
	w.Expect(w.client.Update(t.Context(), cluster)).To(Succeed())
	w.passes("m", 2)
	w.expect("m", "Paused True Paused", "")
	w.Expect(w.Requests()).To(BeEmpty())
	cluster.Spec.Paused = ptr.To(false)
	w.Expect(w.client.Update(t.Context(), cluster)).To(Succeed())
	w.passes("m", 2)
	w.expect("m", "Paused False NotPaused", "")
	w.expect("m", "Ready True Ready", "")
}
