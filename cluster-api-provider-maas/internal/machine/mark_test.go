// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// markAll sets the annotations of a MaasMachine that is long gone on every free machine, as mark_broken and mark_fixed
// leave them.
func (w *world) markAll() {
	for _, m := range w.Machines() {
		w.Change(m.SystemID, func(m *inventory.Machine) {
			m.Annotations = map[string]string{maas.AnnotationMachineUID: "dead", maas.AnnotationClusterUID: "dead-cluster", maas.AnnotationMachine: "old"}
		})
	}
}

func oldMark(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.markAll()
	w.addPlain("m")
	w.until("Ready True Ready", "m")
	m := w.machine("m")
	got := w.Machine(*m.Spec.SystemID)
	w.Expect(got.Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, string(m.UID)))
	w.Expect(got.Annotations).To(HaveKeyWithValue(maas.AnnotationMachine, "m"))
	w.Expect(got.Annotations).NotTo(HaveKeyWithValue(maas.AnnotationClusterUID, "dead-cluster"))

	w.addPlain("undone")
	w.before = func(op string) error {
		if op == "set_workload_annotations" {
			return errCut
		}
		return nil
	}
	w.pass("undone")
	w.before = nil
	id := *w.machine("undone").Spec.SystemID
	w.Expect(w.Machine(id).Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, "dead"))
	w.remove("undone")
	w.restart()
	w.leave("undone")
	w.Expect(w.Machine(id).Status).To(Equal(status.Ready), "what is allocated by our key is ours, whatever its mark says")
	w.leave("m")
	w.expectAllFree()
}

func diesOverOldMarks(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	n := 1
	for w.diesMarked(n, false) && w.diesMarked(n, true) {
		n++
	}
	w.Expect(n).To(BeNumerically(">", 7), "that many writes are made until it is deployed")
}

// diesMarked runs the lifecycle of a machine with an old annotation, and interrupts it at the n-th write of its
// creation and of its deletion. It reports whether there were that many writes.
func (w *world) diesMarked(n int, after bool) bool {
	w.t.Helper()
	name := fmt.Sprintf("m-%d-%t", n, after)
	w.markAll()
	w.addPlain(name)
	making, ending := &fuse{left: n, after: after}, &fuse{left: n, after: after}
	w.die(name, making)
	if n%2 == 0 {
		w.until("Ready True Ready", name)
	}
	w.remove(name)
	w.die(name, ending)
	w.leave(name)
	w.expectAllFree(name)
	return making.burnt || ending.burnt
}

func brokenAndFixed(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("m")
	w.until("Ready True Ready", "m")
	id := *w.machine("m").Spec.SystemID
	w.Change(id, func(m *inventory.Machine) { m.Owner, m.AgentName, m.PowerState = "", "", "off" })
	w.wrote()
	w.later("m", 2)
	w.expect("m", "Ready False MachineTerminatedReason", "it has no owner in MAAS: it was marked broken and fixed")
	w.Expect(w.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
	w.Expect(w.wrote()).To(BeEmpty(), "it is not switched on")
	w.leave("m")
	w.expectAllFree("nobody else would ever give it back")
}

// markStayed covers a machine that was marked broken and then fixed, and that another client with the same MAAS user
// then allocated.
func markStayed(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "alice")
	w.addPlain("m")
	w.until("Ready True Ready", "m")
	id := *w.machine("m").Spec.SystemID
	w.Change(id, func(m *inventory.Machine) { m.AgentName = "by-hand" })
	w.remove("m")
	w.later("m", 2)
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.Machine(id).Status).To(Equal(status.Deployed), "another's by now")
}
