package machine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// TestHandOver is about machines that MAAS does not take back: their MaasMachines go, and the MaasCluster goes on.
func TestHandOver(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a BMC dies after the deployment, the MaasMachine should go and its machine be given back later": deadAfterDeploy,
		"When a BMC is dead and MAAS does not notice, it should not wait for MAAS":                            deadUnnoticed,
		"When an earlier machine is not back, the MaasMachine should go at once":                              earlierNotBack,
		"When MAAS refuses the release, it should wait as long as a release may take, and hand over":          refusedRelease,
		"When MAAS is at it, it should not hand over":                                                         stillErasing,
		"When there is no MaasCluster, it should keep the MaasMachine":                                        nobodyTakesOver,
		"When the cluster is deleted, it should not go before its machines, and say what for":                 clusterWaits,
		"When a machine that was handed over is another's by now, it should be left alone":                    anothersByNow,
		"When it had a static address, that should be taken off before the machine is taken again":            addressHandedOver,
		"When the key is of another user, what was handed over should wait for the first":                     handedOverKey,
		"When its hardware tests failed, it should say what ends that, and give it back then":                 testsFailed,
		"When a person breaks a record, it should stand until a person ends it":                               brokenRecord,
		"When the process dies between any two writes of a hand-over, the next should finish":                 diesOverHandOver,
		"When the MaasCluster was let go of meanwhile, nothing should be handed over to it, nor be forgotten": clusterLetGo,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// stuck takes the power controller of a machine away that runs, and has MAAS notice that it cannot be released.
func (k *rack) stuck(systemID string) (mend func()) {
	k.t.Helper()
	return simtest.Fault(k.t, k.Simulator, faults.Rule{Kind: faults.ReleaseFails, Machine: systemID})
}

// newRun is a rack with one MaasMachine that runs, whose cluster is looked after.
func newRun(t *testing.T, cfg *rest.Config, name string) (k *rack, systemID string) {
	k = newRack(t, cfg, "alice")
	k.owned()
	k.look()
	k.addPlain(name)
	return k, k.runsOn(name)
}

// minutes lets the reconcilers work for some minutes, in which MAAS does what is due.
func (k *rack) minutes(n int, names ...string) {
	k.t.Helper()
	for range n {
		k.clock.SetTime(k.clock.Now().Add(49 * time.Second))
		for _, name := range names {
			k.pass(name) // Takes 11 s.
		}
	}
}

// end deletes a MaasMachine now, by the clock of the API server, which says when.
func (k *rack) end(name string) {
	k.t.Helper()
	k.remove(name)
	k.clock.SetTime(k.machine(name).DeletionTimestamp.Time)
	k.restart()
	k.pass(name)
}

// inState waits until MAAS has a machine in a state.
func (k *rack) inState(systemID string, wanted status.Status) {
	k.t.Helper()
	k.Eventually(func() status.Status { return k.Machine(systemID).Status }, "20s", "10ms").Should(Equal(wanted))
}

// taken lets the MaasCluster look until nothing that was handed over is left.
func (k *rack) taken() {
	k.t.Helper()
	k.Eventually(func() map[string]handover.Record {
		k.clock.SetTime(k.clock.Now().Add(time.Minute))
		k.look()
		infra := &infrav1.MaasCluster{}
		if err := k.client.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "demo"}, infra); apierrors.IsNotFound(err) {
			return nil
		}
		return handover.Of(infra)
	}, "20s", "20ms").Should(BeEmpty())
}

// notReleased checks what the MaasCluster says.
func (k *rack) notReleased(words string) {
	k.t.Helper()
	c := meta.FindStatusCondition(k.cluster().Status.Conditions, cluster.ConditionReleased)
	k.Expect(describe(c)).To(And(HavePrefix("MachinesReleased False MachinesNotReleased"), ContainSubstring(words)))
}

func deadAfterDeploy(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	mend := k.stuck(id)
	k.end("m")
	k.inState(id, status.FailedReleasing)
	k.minutes(8, "m")
	k.Expect(k.gone("m")).To(BeFalse(), "a BMC may come back in these minutes")
	k.expect("m", "Deleting True MachineReleaseFailed", "could not take it back")
	k.told()
	k.minutes(4, "m")
	k.Expect(k.gone("m")).To(BeTrue(), "a dead BMC must not hold it for ever")
	k.Expect(handover.Of(k.cluster())).To(HaveKeyWithValue(id, HaveField("Machine", "m")))
	k.Expect(strings.Join(k.told(), "\n")).To(ContainSubstring("Warning MachineHandedOver MAAS has not taken back machine one (aaaaa1) of MaasMachine m"))

	k.restart()
	k.wrote()
	for range 24 * 6 {
		k.clock.SetTime(k.clock.Now().Add(10 * time.Minute))
		k.look()
	}
	asked := len(k.wrote())
	k.Expect(asked).To(BeNumerically(">", 20), "it is asked for again")
	k.Expect(asked).To(BeNumerically("<", 50), "and seldom")
	k.notReleased("kubectl annotate maascluster -n " + k.namespace + " demo handed-over-machine.infrastructure.cluster.x-k8s.io/" + id + "-")
	k.inState(id, status.FailedReleasing)
	k.clock.SetTime(k.clock.Now().Add(time.Minute))
	k.look()
	before := k.cluster().ResourceVersion
	k.clock.SetTime(k.clock.Now().Add(time.Minute))
	k.look()
	k.Expect(k.cluster().ResourceVersion).To(Equal(before), "nothing new is nothing to write")

	mend()
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.taken()
	k.expectAllFree()
	k.Expect(describe(meta.FindStatusCondition(k.cluster().Status.Conditions, cluster.ConditionReleased))).To(HavePrefix("MachinesReleased True"))
	k.Expect(strings.Join(k.told(), "\n")).To(ContainSubstring("Normal MachineReleased machine one (aaaaa1) of MaasMachine m, which is gone"))
}

// earlierNotBack fails over from a machine that MAAS does not take back, and is deleted then.
func earlierNotBack(t *testing.T, cfg *rest.Config) {
	k := newSick(t, cfg, "alice")
	k.look()
	mend := k.stuck(bad)
	k.addPlain("m")
	other := k.runsOn("m")
	k.Expect(other).NotTo(Equal(bad))
	k.expect("m", "FailedMachinesReleased False MachineReleaseFailed", "machine one (aaaaa1)")
	k.leave("m")
	k.Expect(k.Machine(other).Status).To(Equal(status.Ready))
	k.Expect(k.Machine(bad).Owner).To(Equal("alice"))
	k.Expect(handover.Of(k.cluster())).To(HaveKey(bad))
	k.look()
	k.notReleased("machine one (aaaaa1) of MaasMachine m")
	mend()
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.taken()
	k.expectAllFree()
}

func refusedRelease(t *testing.T, cfg *rest.Config) {
	for code, reason := range map[int]string{http.StatusServiceUnavailable: "MAASUnavailable", http.StatusConflict: "MAASError", http.StatusForbidden: "MAASForbidden"} {
		k, id := newRun(t, cfg, "m")
		mend := simtest.Refuse(t, k.Simulator, "machine.release", id, code, "the chassis says no")
		k.end("m")
		k.minutes(8, "m")
		k.expect("m", "Deleting True "+reason, "the chassis says no")
		k.minutes(5, "m")
		k.Expect(k.gone("m")).To(BeTrue(), "%d", code)
		k.look()
		k.notReleased("the chassis says no")
		k.Expect(k.Machine(id).Status).To(Equal(status.Deployed))
		mend()
		k.clock.SetTime(k.clock.Now().Add(time.Hour))
		k.taken()
		k.inState(id, status.Ready)
	}
}

func stillErasing(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	k.Change(id, func(m *inventory.Machine) { m.Status, m.Task = status.DiskErasing, nil })
	k.end("m")
	for range 23 {
		k.clock.SetTime(k.clock.Now().Add(time.Hour))
		k.pass("m")
	}
	k.expect("m", "Deleting True MachineReleasing", "MAAS takes it back")
	k.Expect(handover.Of(k.cluster())).To(BeEmpty())
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.minutes(2, "m")
	k.Expect(k.gone("m")).To(BeTrue())
	k.Expect(handover.Of(k.cluster())).To(HaveKey(id))
	k.Change(id, func(m *inventory.Machine) { m.Status, m.Owner = status.Broken, "" })
	k.taken()
	k.Expect(k.Machine(id).Status).To(Equal(status.Broken), "who marked it wants it so")
}

func nobodyTakesOver(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	infra := k.cluster()
	infra.Finalizers = nil
	k.Expect(k.client.Update(t.Context(), infra)).To(Succeed())
	k.Expect(k.client.Delete(t.Context(), infra)).To(Succeed())
	mend := k.stuck(id)
	k.end("m")
	k.inState(id, status.FailedReleasing)
	k.minutes(60, "m")
	k.Expect(k.gone("m")).To(BeFalse(), "nobody else knows of its machine")
	k.expect("m", "Deleting True MachineReleaseFailed", "could not take it back")
	mend()
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.leave("m")
	k.expectAllFree()
}

func clusterWaits(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	mend := k.stuck(id)
	k.end("m")
	k.inState(id, status.FailedReleasing)
	k.minutes(15, "m")
	k.Expect(k.gone("m")).To(BeTrue())
	k.Expect(k.client.Delete(t.Context(), k.cluster())).To(Succeed())
	for range 10 {
		k.clock.SetTime(k.clock.Now().Add(time.Minute))
		k.look()
	}
	c := meta.FindStatusCondition(k.cluster().Status.Conditions, "Deleting")
	k.Expect(describe(c)).To(And(HavePrefix("Deleting True MachinesNotReleased"), ContainSubstring("machine one (aaaaa1) of MaasMachine m"), ContainSubstring("Mend its power")))
	k.credentials("wrong:key:oops")
	k.restart()
	k.look()
	k.Expect(describe(meta.FindStatusCondition(k.cluster().Status.Conditions, "Deleting"))).To(
		And(HavePrefix("Deleting True MAASUnauthorized"), ContainSubstring("machine one (aaaaa1)")))
	k.credentials(k.Key("alice"))
	k.restart()
	mend()
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.taken()
	k.expectAllFree()
	k.look()
	k.Expect(apierrors.IsNotFound(k.client.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "demo"}, &infrav1.MaasCluster{}))).To(BeTrue())
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
		k, id := newRun(t, cfg, "m")
		k.stuck(id)
		k.end("m")
		k.pass("m")
		k.inState(id, status.FailedReleasing)
		k.minutes(15, "m")
		k.Expect(handover.Of(k.cluster())).To(HaveKey(id), name)
		k.Change(id, to)
		owner := k.Machine(id).Owner
		k.taken()
		k.Expect(k.Machine(id).Status).To(Equal(status.Deployed), name)
		k.Expect(k.Machine(id).Owner).To(Equal(owner), name)
	}
}

func addressHandedOver(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "admin")
	k.owned()
	k.look()
	k.addStatic("m", infrav1.StaticIPConfig{IP: "10.9.0.60"})
	id := k.runsOn("m")
	k.Expect(k.modes(id, 0)).To(Equal([]string{"static 10.9.0.60"}))
	mend := k.stuck(id)
	k.end("m")
	k.inState(id, status.FailedReleasing)
	k.minutes(15, "m")
	k.Expect(k.gone("m")).To(BeTrue())

	mend()
	k.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName, m.Annotations = status.Ready, "", "", nil })
	k.addPlain("next")
	k.Expect(k.runsOn("next")).NotTo(Equal(id), "it still has the address")
	k.taken()
	k.Expect(k.modes(id, 0)).To(Equal([]string{"auto"}))
	k.addPlain("third")
	k.Expect(k.runsOn("third")).To(Equal(id))
}

func handedOverKey(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	mend := k.stuck(id)
	k.end("m")
	k.inState(id, status.FailedReleasing)
	k.minutes(15, "m")
	mend()
	k.credentials(k.Key("bob"))
	k.restart()
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.look()
	k.Expect(handover.Of(k.cluster())).To(HaveKey(id), "MAAS hides the machine from bob")
	k.Expect(describe(meta.FindStatusCondition(k.cluster().Status.Conditions, cluster.ConditionMAAS))).To(ContainSubstring("belongs to the MAAS user alice"))
	k.credentials(k.Key("alice"))
	k.restart()
	k.taken()
	k.expectAllFree()
}

func brokenRecord(t *testing.T, cfg *rest.Config) {
	k, _ := newRun(t, cfg, "m")
	infra := k.cluster()
	const annotation = "handed-over-machine.infrastructure.cluster.x-k8s.io/abc"
	infra.Annotations[annotation] = "{oops"
	k.Expect(k.client.Update(t.Context(), infra)).To(Succeed())
	k.look()
	k.notReleased("its annotation can't be read")
	infra = k.cluster()
	delete(infra.Annotations, annotation)
	k.Expect(k.client.Update(t.Context(), infra)).To(Succeed())
	k.look()
	k.Expect(describe(meta.FindStatusCondition(k.cluster().Status.Conditions, cluster.ConditionReleased))).To(HavePrefix("MachinesReleased True"))
}

func diesOverHandOver(t *testing.T, cfg *rest.Config) {
	k, _ := newRun(t, cfg, "m-0")
	k.leave("m-0")
	for n := 1; ; n++ {
		burnt := false
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("m-%d-%t", n, after)
			k.addPlain(name)
			id := k.runsOn(name)
			mend := simtest.Refuse(t, k.Simulator, "machine.release", id, http.StatusConflict, "no")
			k.end(name)
			k.minutes(9, name)
			k.clock.SetTime(k.clock.Now().Add(3 * time.Minute))
			f := &fuse{left: n, after: after}
			k.die(name, f)
			burnt = burnt || f.burnt
			k.Expect(k.gone(name) && len(handover.Of(k.cluster())) == 0).To(BeFalse(), "%s: its machine is forgotten", name)
			k.minutes(3, name)
			k.Expect(k.gone(name)).To(BeTrue(), name)
			k.Expect(handover.Of(k.cluster())).To(HaveLen(1), name)
			mend()
			k.diesTakingBack(n, after)
			k.clock.SetTime(k.clock.Now().Add(time.Hour))
			k.taken()
			k.expectAllFree(name)
		}
		if !burnt {
			k.Expect(n).To(BeNumerically(">", 3))
			return
		}
	}
}

// diesTakingBack has a process die over the work of the MaasCluster.
func (k *rack) diesTakingBack(n int, after bool) {
	f := &fuse{left: n, after: after}
	k.kube = k.fused(f)
	k.before, k.after = func(string) error { return f.before() }, func(string) error { return f.done() }
	k.restart()
	for range 4 {
		k.clock.SetTime(k.clock.Now().Add(time.Minute))
		_ = k.glance()
	}
	k.kube, k.before, k.after = k.client, nil, nil
	k.restart()
}

func clusterLetGo(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	stale := k.cluster()
	k.stuck(id)
	k.end("m")
	k.inState(id, status.FailedReleasing)
	k.minutes(8, "m")
	infra := k.cluster()
	infra.Finalizers = []string{"example.com/another"}
	k.Expect(k.client.Update(t.Context(), infra)).To(Succeed())
	k.kube = k.remembering(stale)
	k.restart()
	k.clock.SetTime(k.clock.Now().Add(5 * time.Minute))
	k.pass("m")
	k.Expect(k.gone("m")).To(BeFalse(), "the MaasCluster that the cache shows is not the one that is there")
	k.Expect(handover.Of(k.cluster())).To(BeEmpty())
}

// remembering is the API server as a cache shows it that has missed what became of the MaasCluster.
func (k *rack) remembering(infra *infrav1.MaasCluster) client.Client {
	c, err := client.NewWithWatch(k.cfg, client.Options{Scheme: scheme()})
	k.Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if shown, ok := obj.(*infrav1.MaasCluster); ok {
				infra.DeepCopyInto(shown)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
}

// deadUnnoticed: a BMC that swallows what it is told leaves MAAS waiting for the power to go off.
func deadUnnoticed(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	mend := simtest.KillBMC(t, k.Simulator, id)
	k.end("m")
	k.inState(id, status.Releasing)
	k.minutes(9, "m")
	k.Expect(k.gone("m")).To(BeFalse())
	k.minutes(6, "m")
	k.Expect(k.gone("m")).To(BeTrue())
	k.look()
	k.notReleased("machine one (aaaaa1) is Releasing: MAAS takes it back")
	mend()
	k.Change(id, func(m *inventory.Machine) { m.Status, m.Owner, m.Annotations, m.Task = status.Ready, "", nil, nil })
	k.taken()
}

func testsFailed(t *testing.T, cfg *rest.Config) {
	k, id := newRun(t, cfg, "m")
	simtest.FailTests(t, k.Simulator, id)
	k.inState(id, status.FailedTesting)
	k.later("m", 1)
	k.expect("m", "Ready False MachineTestsFailed", "its hardware tests failed")
	k.end("m")
	k.expect("m", "Deleting True MachineReleaseBlocked", "override the failed tests there")
	k.minutes(12, "m")
	k.Expect(k.gone("m")).To(BeTrue())
	k.look()
	k.notReleased("override the failed tests there, after which it is given back, or mark it as broken")
	k.Expect(k.Machine(id).Owner).To(Equal("alice"))
	k.Change(id, func(m *inventory.Machine) { k.Expect(k.Life.OverrideFailedTesting(m, "admin", "")).To(Succeed()) })
	k.taken()
	k.inState(id, status.Ready)
}
