// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestReleaseErases checks that the disks of a machine are erased as its pool requires, by whatever releases the
// machine, if MAAS began to install it.
func TestReleaseErases(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"erases no disks when MAAS accepted no deployment":          rejectedThenDeleted,
		"erases the disks when the deployment was aborted":          abortedThenDeleted,
		"erases the disks of an orphan as its MaasMachine required": orphanErased,
		"erases no disks of an orphan that was never installed":     orphanNeverInstalled,
		"writes no mark to a machine that version 0.1.0 deployed":   notMarked,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func (w *world) addErased(name, mode string) {
	w.t.Helper()
	w.add(name, infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024), Erase: &infrav1.EraseConfig{Mode: mode}})
}

func rejectedThenDeleted(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.refuse("machine.deploy", "", http.StatusBadRequest, "Deployment operating system ubuntu noble is unavailable.")
	w.addErased("m", "Quick")
	w.passes("m", 3)
	w.leave("m")
	w.Expect(w.sent("release")).NotTo(Or(BeNil(), HaveKey("erase"), HaveKey("quick_erase")))
}

func abortedThenDeleted(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addErased("m", "Secure")
	w.Eventually(func() status.Status {
		w.pass("m")
		return w.Machine(w.holds("m")).Status
	}, patience, "20ms").Should(Equal(status.Deployed))
	w.edit(w.holds("m"), func(m *inventory.Machine) { m.Status = status.Allocated })
	w.leave("m")
	w.Expect(w.sent("release").Get("secure_erase")).To(Equal("true"))
}

func orphanErased(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.owned()
	w.look()
	w.addErased("m", "Secure")
	w.until("Ready True Ready", "m")
	w.Expect(w.Machine(w.holds("m")).Annotations).To(HaveKeyWithValue(maas.AnnotationErase, "Secure"))
	w.Expect(w.orphaned("m")).To(And(HaveKeyWithValue("erase", []string{"true"}), HaveKeyWithValue("secure_erase", []string{"true"})))
}

func orphanNeverInstalled(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.owned()
	w.look()
	w.refuse("machine.deploy", "", http.StatusBadRequest, "Deployment operating system ubuntu noble is unavailable.")
	w.addErased("m", "Quick")
	w.passes("m", 3)
	w.Expect(w.orphaned("m")).NotTo(HaveKey("erase"))
}

// notMarked checks that an upgrade writes nothing to running machines.
func notMarked(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addErased("m", "Secure")
	w.until("Ready True Ready", "m")
	w.edit(w.holds("m"), func(m *inventory.Machine) { delete(m.Annotations, maas.AnnotationErase) })
	w.restart()
	w.passes("m", 3)
	w.Expect(w.Machine(w.holds("m")).Annotations).NotTo(HaveKey(maas.AnnotationErase))
}

// orphaned removes the finalizers of a MaasMachine, and returns the form of the release by the sweep.
func (w *world) orphaned(name string) url.Values {
	w.t.Helper()
	m := w.machine(name)
	m.Finalizers = nil
	w.Expect(w.client.Update(w.t.Context(), m)).To(Succeed())
	w.remove(name)
	w.Expect(w.gone(name)).To(BeTrue())
	for range 40 {
		w.clock.SetTime(w.clock.Now().Add(3 * time.Minute))
		w.look()
	}
	form := w.sent("release")
	w.Expect(form).NotTo(BeNil(), "the sweep releases it")
	return form
}
