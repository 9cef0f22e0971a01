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

// markAll leaves the marks of a MaasMachine that is long gone on every machine that is free, as mark_broken and mark_fixed do.
func (k *rack) markAll() {
	for _, m := range k.Machines() {
		k.Change(m.SystemID, func(m *inventory.Machine) {
			m.Annotations = map[string]string{maas.AnnotationMachineUID: "dead", maas.AnnotationClusterUID: "dead-cluster", maas.AnnotationMachine: "old"}
		})
	}
}

func oldMark(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.markAll()
	k.addPlain("m")
	k.until("Ready True Ready", "m")
	m := k.machine("m")
	got := k.Machine(*m.Spec.SystemID)
	k.Expect(got.Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, string(m.UID)))
	k.Expect(got.Annotations).To(HaveKeyWithValue(maas.AnnotationMachine, "m"))
	k.Expect(got.Annotations).NotTo(HaveKeyWithValue(maas.AnnotationClusterUID, "dead-cluster"))

	k.addPlain("undone")
	k.before = func(op string) error {
		if op == "set_workload_annotations" {
			return errCut
		}
		return nil
	}
	k.pass("undone")
	k.before = nil
	id := *k.machine("undone").Spec.SystemID
	k.Expect(k.Machine(id).Annotations).To(HaveKeyWithValue(maas.AnnotationMachineUID, "dead"))
	k.remove("undone")
	k.restart()
	k.leave("undone")
	k.Expect(k.Machine(id).Status).To(Equal(status.Ready), "what is allocated by our key is ours, whatever its mark says")
	k.leave("m")
	k.expectAllFree()
}

func diesOverOldMarks(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	n := 1
	for k.diesMarked(n, false) && k.diesMarked(n, true) {
		n++
	}
	k.Expect(n).To(BeNumerically(">", 7), "that many writes are made until it is deployed")
}

// diesMarked takes a machine with an old mark through its life, with a death at the n-th write of its making and of its end, and
// tells whether there were as many writes.
func (k *rack) diesMarked(n int, after bool) bool {
	k.t.Helper()
	name := fmt.Sprintf("m-%d-%t", n, after)
	k.markAll()
	k.addPlain(name)
	making, ending := &fuse{left: n, after: after}, &fuse{left: n, after: after}
	k.die(name, making)
	if n%2 == 0 {
		k.until("Ready True Ready", name)
	}
	k.remove(name)
	k.die(name, ending)
	k.leave(name)
	k.expectAllFree(name)
	return making.burnt || ending.burnt
}

func brokenAndFixed(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("m")
	k.until("Ready True Ready", "m")
	id := *k.machine("m").Spec.SystemID
	k.Change(id, func(m *inventory.Machine) { m.Owner, m.AgentName, m.PowerState = "", "", "off" })
	k.wrote()
	k.later("m", 2)
	k.expect("m", "Ready False MachineTerminatedReason", "nobody has it in MAAS: it was marked as broken and fixed")
	k.Expect(k.machine("m").Status.FailureReason).To(HaveValue(Equal("UpdateError")))
	k.Expect(k.wrote()).To(BeEmpty(), "it is not switched on")
	k.leave("m")
	k.expectAllFree("nobody else would ever give it back")
}

// markStayed is a machine that was marked as broken and fixed, and that somebody else with the same MAAS user allocated then.
func markStayed(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "alice")
	k.addPlain("m")
	k.until("Ready True Ready", "m")
	id := *k.machine("m").Spec.SystemID
	k.Change(id, func(m *inventory.Machine) { m.AgentName = "by-hand" })
	k.remove("m")
	k.later("m", 2)
	k.Expect(k.gone("m")).To(BeTrue())
	k.Expect(k.Machine(id).Status).To(Equal(status.Deployed), "another's by now")
}
