// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestHandOver covers machines that MAAS does not release: their MaasMachines are deleted, and the MaasCluster
// continues the release.
func TestHandOver(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a BMC dies after the deployment, the MaasMachine should be deleted and the machine released later": deadAfterDeploy,
		"When a BMC is dead and MAAS does not notice, the deletion should not wait indefinitely":                 deadUnnoticed,
		"When an earlier machine is not released, the MaasMachine should be deleted without a wait":              earlierNotBack,
		"When MAAS rejects the release, it should wait for the release timeout and then delegate the release":    refusedRelease,
		"When MAAS is still erasing disks, it should not delegate the release":                                   stillErasing,
		"When there is no MaasCluster, it should keep the MaasMachine":                                           nobodyTakesOver,
		"When the MaasCluster is deleted, it should wait for the pending releases and report them":               clusterWaits,
		"When a machine with a pending release belongs to another user, it should not be released":               anothersByNow,
		"When the machine has a static address, the address should be unassigned before the next allocation":     addressHandedOver,
		"When the key belongs to another user, the pending release should wait for the first user":               handedOverKey,
		"When the hardware tests failed, it should report the remedy and release the machine afterwards":         testsFailed,
		"When the disks must be erased, the delegated release should erase them":                                 erasedLater,
		"When a user corrupts a release record, it should stay until a user deletes it":                          brokenRecord,
		"When the process dies between any two writes of a delegation, the next process should finish it":        diesOverHandOver,
		"When the MaasCluster has lost its finalizer, no release should be delegated to it or forgotten":         clusterGivenUp,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// stuck makes the release of a machine fail, as with a broken power controller. The returned function repairs it.
func (w *world) stuck(systemID string) (accept func()) {
	w.t.Helper()
	return simtest.Fault(w.t, w.Simulator, faults.Rule{Kind: faults.ReleaseFails, Machine: systemID})
}

// newRun returns a fixture with one running MaasMachine, whose MaasCluster is reconciled.
func newRun(t *testing.T, cfg *rest.Config, name string) (w *world, systemID string) {
	w = newRack(t, cfg, "alice")
	w.owned()
	w.look()
	w.addPlain(name)
	return w, w.runsOn(name)
}

// minutes runs the reconcilers and the simulated MAAS for n minutes.
func (w *world) minutes(n int, names ...string) {
	w.t.Helper()
	for range n {
		w.clock.SetTime(w.clock.Now().Add(49 * time.Second))
		for _, name := range names {
			w.pass(name) // Takes 11 s.
		}
	}
}

// end deletes a MaasMachine and sets the clock to the deletion timestamp, which is the time of the API server.
func (w *world) end(name string) {
	w.t.Helper()
	w.remove(name)
	w.clock.SetTime(w.machine(name).DeletionTimestamp.Time)
	w.restart()
	w.pass(name)
}

// inState completes the pending work of MAAS, then checks the state of a machine.
func (w *world) inState(systemID string, wanted status.Status) {
	w.t.Helper()
	w.tick()
	w.Expect(w.Machine(systemID).Status).To(Equal(wanted))
}

// taken reconciles the MaasCluster until no delegated release is left.
func (w *world) taken() {
	w.t.Helper()
	w.Eventually(func() map[string]handover.Record {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.look()
		infra := &infrav1.MaasCluster{}
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "demo"}, infra); apierrors.IsNotFound(err) {
			return nil
		}
		return handover.Records.Of(infra)
	}, patience, "20ms").Should(BeEmpty())
}

// notReleased checks the MachinesReleased condition of the MaasCluster.
func (w *world) notReleased(words string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.cluster().Status.Conditions, cluster.ConditionReleased)
	w.Expect(describe(c)).To(And(HavePrefix("MachinesReleased False MachinesNotReleased"), ContainSubstring(words)))
}

func deadAfterDeploy(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	accept := w.stuck(id)
	w.end("m")
	w.inState(id, status.FailedReleasing)
	w.minutes(8, "m")
	w.Expect(w.gone("m")).To(BeFalse(), "a BMC may come back in these minutes")
	w.expect("m", "Deleting True MachineReleaseFailed", "could not release it")
	w.told()
	w.minutes(4, "m")
	w.Expect(w.gone("m")).To(BeTrue(), "a dead BMC must not hold it for ever")
	w.Expect(handover.Records.Of(w.cluster())).To(HaveKeyWithValue(id, HaveField("Machine", "m")))
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("Warning MachineHandedOver MAAS has not released machine one (aaaaa1) of the deleted MaasMachine m"))

	w.restart()
	w.wrote()
	for range 24 * 6 {
		w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
		w.look()
	}
	asked := len(w.wrote())
	w.Expect(asked).To(BeNumerically(">", 20), "it is asked for again")
	w.Expect(asked).To(BeNumerically("<", 50), "and seldom")
	w.notReleased("kubectl annotate maascluster -n " + w.namespace + " demo handed-over-machine.infrastructure.cluster.x-k8s.io/" + id + "-")
	w.inState(id, status.FailedReleasing)
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.look()
	before := w.cluster().ResourceVersion
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.look()
	w.Expect(w.cluster().ResourceVersion).To(Equal(before), "nothing new is nothing to write")

	accept()
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.taken()
	w.expectAllFree()
	w.Expect(describe(meta.FindStatusCondition(w.cluster().Status.Conditions, cluster.ConditionReleased))).To(HavePrefix("MachinesReleased True"))
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("Normal MachineReleased machine one (aaaaa1) of MaasMachine m, which is gone"))
}

// earlierNotBack covers a MaasMachine that is deleted after it replaced a machine which MAAS does not release.
func earlierNotBack(t *testing.T, cfg *rest.Config) {
	w := newSick(t, cfg, "alice")
	w.look()
	accept := w.stuck(bad)
	w.addPlain("m")
	other := w.runsOn("m")
	w.Expect(other).NotTo(Equal(bad))
	w.expect("m", "FailedMachinesReleased False MachineReleaseFailed", "machine one (aaaaa1)")
	w.leave("m")
	w.Expect(w.Machine(other).Status).To(Equal(status.Ready))
	w.Expect(w.Machine(bad).Owner).To(Equal("alice"))
	w.Expect(handover.Records.Of(w.cluster())).To(HaveKey(bad))
	w.look()
	w.notReleased("machine one (aaaaa1) of the deleted MaasMachine m")
	accept()
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.taken()
	w.expectAllFree()
}

func refusedRelease(t *testing.T, cfg *rest.Config) {
	for code, reason := range map[int]string{http.StatusServiceUnavailable: "MAASUnavailable", http.StatusConflict: "MAASError", http.StatusForbidden: "MAASForbidden"} {
		w, id := newRun(t, cfg, "m")
		accept := simtest.Refuse(t, w.Simulator, "machine.release", id, code, "the chassis says no")
		w.end("m")
		w.minutes(8, "m")
		w.expect("m", "Deleting True "+reason, "the chassis says no")
		w.minutes(5, "m")
		w.Expect(w.gone("m")).To(BeTrue(), "%d", code)
		w.look()
		w.notReleased("the chassis says no")
		w.Expect(w.Machine(id).Status).To(Equal(status.Deployed))
		accept()
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.taken()
		w.inState(id, status.Ready)
	}
}

func stillErasing(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	w.Change(id, func(m *inventory.Machine) { m.Status, m.Task = status.DiskErasing, nil })
	w.end("m")
	for range 23 {
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.pass("m")
	}
	w.expect("m", "Deleting True MachineReleasing", "MAAS is releasing it")
	w.Expect(handover.Records.Of(w.cluster())).To(BeEmpty())
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.minutes(2, "m")
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(handover.Records.Of(w.cluster())).To(HaveKey(id))
	w.Change(id, func(m *inventory.Machine) { m.Status, m.Owner = status.Broken, "" })
	w.taken()
	w.Expect(w.Machine(id).Status).To(Equal(status.Broken), "who marked it wants it so")
}

func nobodyTakesOver(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	infra := w.cluster()
	infra.Finalizers = nil
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), infra)).To(Succeed())
	accept := w.stuck(id)
	w.end("m")
	w.inState(id, status.FailedReleasing)
	w.minutes(60, "m")
	w.Expect(w.gone("m")).To(BeFalse(), "nobody else knows of its machine")
	w.expect("m", "Deleting True MachineReleaseFailed", "could not release it")
	accept()
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.leave("m")
	w.expectAllFree()
}

func clusterWaits(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	accept := w.stuck(id)
	w.end("m")
	w.inState(id, status.FailedReleasing)
	w.minutes(15, "m")
	w.Expect(w.gone("m")).To(BeTrue())
	w.Expect(w.client.Delete(t.Context(), w.cluster())).To(Succeed())
	for range 10 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.look()
	}
	c := meta.FindStatusCondition(w.cluster().Status.Conditions, "Deleting")
	w.Expect(describe(c)).To(And(HavePrefix("Deleting True MachinesNotReleased"), ContainSubstring("machine one (aaaaa1) of the deleted MaasMachine m"), ContainSubstring("Fix its power")))
	w.credentials("wrong:key:oops")
	w.restart()
	w.look()
	w.Expect(describe(meta.FindStatusCondition(w.cluster().Status.Conditions, "Deleting"))).To(
		And(HavePrefix("Deleting True MAASUnauthorized"), ContainSubstring("machine one (aaaaa1)")))
	w.credentials(w.Key("alice"))
	w.restart()
	accept()
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.taken()
	w.expectAllFree()
	w.look()
	w.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "demo"}, &infrav1.MaasCluster{}))).To(BeTrue())
}

func anothersByNow(t *testing.T, cfg *rest.Config) {
	for name, to := range map[string]func(*inventory.Machine){
		"of the same user": func(m *inventory.Machine) {
			m.Status, m.Owner, m.AgentName, m.Annotations = status.Deployed, "alice", "juju", nil
		},
		"of another user": func(m *inventory.Machine) {
			m.Status, m.Owner, m.AgentName, m.Annotations = status.Deployed, "bob", "", nil
		},
	} {
		w, id := newRun(t, cfg, "m")
		w.stuck(id)
		w.end("m")
		w.pass("m")
		w.inState(id, status.FailedReleasing)
		w.minutes(15, "m")
		w.Expect(handover.Records.Of(w.cluster())).To(HaveKey(id), name)
		w.Change(id, to)
		owner := w.Machine(id).Owner
		w.taken()
		w.Expect(w.Machine(id).Status).To(Equal(status.Deployed), name)
		w.Expect(w.Machine(id).Owner).To(Equal(owner), name)
	}
}

func addressHandedOver(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.owned()
	w.look()
	w.addStatic("m", infrav1.StaticIPConfig{IP: "10.9.0.60"})
	id := w.runsOn("m")
	w.Expect(w.modes(id, 0)).To(Equal([]string{"static 10.9.0.60"}))
	accept := w.stuck(id)
	w.end("m")
	w.inState(id, status.FailedReleasing)
	w.minutes(15, "m")
	w.Expect(w.gone("m")).To(BeTrue())

	accept()
	w.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName, m.Annotations = status.Ready, "", "", nil })
	w.addPlain("next")
	w.Expect(w.runsOn("next")).NotTo(Equal(id), "it still has the address")
	w.taken()
	w.Expect(w.modes(id, 0)).To(Equal([]string{"auto"}))
	w.addPlain("third")
	w.Expect(w.runsOn("third")).To(Equal(id))
}

func handedOverKey(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	accept := w.stuck(id)
	w.end("m")
	w.inState(id, status.FailedReleasing)
	w.minutes(15, "m")
	accept()
	w.credentials(w.Key("bob"))
	w.restart()
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.look()
	w.Expect(handover.Records.Of(w.cluster())).To(HaveKey(id), "MAAS hides the machine from bob")
	w.Expect(describe(meta.FindStatusCondition(w.cluster().Status.Conditions, cluster.ConditionMAAS))).To(ContainSubstring("belongs to MAAS user alice"))
	w.credentials(w.Key("alice"))
	w.restart()
	w.taken()
	w.expectAllFree()
}

func brokenRecord(t *testing.T, cfg *rest.Config) {
	w, _ := newRun(t, cfg, "m")
	infra := w.cluster()
	const annotation = "handed-over-machine.infrastructure.cluster.x-k8s.io/abc"
	infra.Annotations[annotation] = "{oops"
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.look()
	w.notReleased("its annotation can't be read")
	infra = w.cluster()
	delete(infra.Annotations, annotation)
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.look()
	w.Expect(describe(meta.FindStatusCondition(w.cluster().Status.Conditions, cluster.ConditionReleased))).To(HavePrefix("MachinesReleased True"))
}

// deadUnnoticed covers a BMC that accepts commands without effect: MAAS waits for the power to go off.
func deadUnnoticed(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	accept := simtest.KillBMC(t, w.Simulator, id)
	w.end("m")
	w.inState(id, status.Releasing)
	w.minutes(9, "m")
	w.Expect(w.gone("m")).To(BeFalse())
	w.minutes(6, "m")
	w.Expect(w.gone("m")).To(BeTrue())
	w.look()
	w.notReleased("machine one (aaaaa1) is Releasing: MAAS is releasing it")
	accept()
	w.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.Annotations, m.Task = status.Ready, "", nil, nil })
	w.taken()
}

func testsFailed(t *testing.T, cfg *rest.Config) {
	w, id := newRun(t, cfg, "m")
	simtest.FailTests(t, w.Simulator, id)
	w.inState(id, status.FailedTesting)
	w.later("m", 1)
	w.expect("m", "Ready False MachineTestsFailed", "its hardware tests failed")
	w.end("m")
	w.expect("m", "Deleting True MachineReleaseBlocked", "override the failed tests in MAAS")
	w.minutes(12, "m")
	w.Expect(w.gone("m")).To(BeTrue())
	w.look()
	w.notReleased("override the failed tests in MAAS, after which it is released, or mark it as broken")
	w.Expect(w.Machine(id).Owner).To(Equal("alice"))
	w.Change(id, func(m *inventory.Machine) { w.Expect(w.Life.OverrideFailedTesting(m, "admin", "")).To(Succeed()) })
	w.taken()
	w.inState(id, status.Ready)
}
