// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestRestore covers clusters whose management cluster was lost while their machines keep running.
func TestRestore(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When new MaasMachines are created, they should get the running machines of their pools":           machinesFoundAgain,
		"When the machines have not been looked up yet, none should be allocated and none released":        nothingBeforeTheLook,
		"When MAAS is unreachable, the restore should not be completed":                                    nothingWithoutMAAS,
		"When the process dies between any two writes, each machine should be claimed once":                diesOverRestore,
		"When all MaasMachines are created at once, no two should claim the same machine":                  allAtOnce,
		"When more machines run than replicas, the rest should be kept and reported until a user decides":  moreThanWanted,
		"When one more replica is desired than ran before, it should get a new machine":                    oneMore,
		"When a MaasCluster only has the name of the lost one, it should not touch the machines":           onlyTheName,
		"When a machine has the annotations of the lost cluster but not the key, it should not be touched": onlyTheMarks,
		"When a machine was not deployed yet, it should be released":                                       notInstalledYet,
		"When the MaasMachine that claimed a machine is deleted, the next one should get the machine":      heirGone,
		"When the restored cluster is lost too, its machines should be found with the same UID":            lostTwice,
		"When the machines are virtual, they should be found and none should be composed":                  virtualFoundAgain,
		"When a machine has a static address, it should be recorded and unassigned at the release":         addressFoundAgain,
		"When old annotations do not name a pool, the pool should be derived from the name of the Machine": olderMarks,
		"When the restored cluster is deleted, no machine of it should be left in MAAS":                    restoredDeleted,
		"When a running machine has old annotations, they should be completed once":                        marksCompleted,
		"When a pool has only a MachineSet, its machines should be found as well":                          setFoundAgain,
		"When a machine was powered off in between, it should be powered on and not deployed":              offMeanwhile,
		"When the new key belongs to another user, no machine should be found or touched":                  restoredByAnother,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cfg)
		})
	}
}

// running returns a fixture with two machines of pool "workers" and one of pool "others", all running.
func running(t *testing.T, cfg *rest.Config) *world {
	t.Helper()
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"}, simtest.Machine{ID: "cccccc"}, simtest.Machine{ID: "dddddd"})
	w.owned()
	w.look()
	for name, pool := range map[string]string{"workers-1": "workers", "workers-2": "workers", "others-1": "others"} {
		w.join(pool, pool+"-x", name, infrav1.MaasMachineSpec{})
		w.passes(name, 4)
		w.expect(name, "Ready True Ready", "")
	}
	return w
}

// lose deletes all objects of the cluster from the management cluster without their finalizers, and creates a
// MaasCluster that replaces the lost one.
func (w *world) lose(restoredFrom string) {
	w.t.Helper()
	for _, list := range []client.ObjectList{&infrav1.MaasMachineList{}, &clusterv1.MachineList{}, &infrav1.MaasClusterList{}} {
		w.Expect(w.client.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())
		var objects []client.Object
		switch list := list.(type) {
		case *infrav1.MaasMachineList:
			for i := range list.Items {
				objects = append(objects, &list.Items[i])
			}
		case *clusterv1.MachineList:
			for i := range list.Items {
				objects = append(objects, &list.Items[i])
			}
		case *infrav1.MaasClusterList:
			for i := range list.Items {
				objects = append(objects, &list.Items[i])
			}
		}
		for _, obj := range objects {
			obj.SetFinalizers(nil)
			w.Expect(w.client.Update(w.t.Context(), obj)).To(Succeed())
			w.Expect(client.IgnoreNotFound(w.client.Delete(w.t.Context(), obj))).To(Succeed())
		}
	}
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: infrav1.MaasClusterSpec{DNSDomain: "maas"}}
	if restoredFrom != "" {
		infra.Annotations = map[string]string{infrav1.RestoredFromAnnotation: restoredFrom}
	}
	w.create(infra)
	w.owned()
	w.restart()
	w.wrote()
}

// uid returns the UID of the MaasCluster.
func (w *world) uid() string { return string(w.cluster().UID) }

// returns creates a MaasMachine of a pool, reconciles it until it is Ready, and returns its machine.
func (w *world) returns(pool, name string) string {
	w.t.Helper()
	w.join(pool, pool+"-y", name, infrav1.MaasMachineSpec{})
	w.passes(name, 4)
	w.expect(name, "Ready True Ready", "")
	return w.holds(name)
}

// untouched checks that the only MAAS calls about machines wrote ownership annotations.
func (w *world) untouched() {
	w.t.Helper()
	for _, op := range w.wrote() {
		w.Expect(op).To(Equal("set_workload_annotations"))
	}
}

func (w *world) systemIDs(pool string) []string {
	var ids []string
	for _, m := range w.held() {
		if m.Annotations[maas.AnnotationPool] == pool {
			ids = append(ids, m.SystemID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (w *world) restored() string {
	c := meta.FindStatusCondition(w.cluster().Status.Conditions, cluster.ConditionRestored)
	if c == nil {
		return "none"
	}
	return string(c.Status) + "/" + c.Reason + ": " + c.Message
}

func machinesFoundAgain(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	workers, others, lost := w.systemIDs("workers"), w.systemIDs("others"), w.uid()
	provider := *w.machine("others-1").Spec.ProviderID
	w.lose(lost)
	w.look()
	w.Expect(slices.Sorted(maps.Keys(w.reservations()))).To(Equal(slices.Sorted(slices.Values(append(slices.Clone(workers), others...)))))
	w.Expect(w.returns("others", "others-2")).To(Equal(others[0]))
	w.Expect(*w.machine("others-2").Spec.ProviderID).To(Equal(provider), "by which Cluster API finds the Node")
	w.Expect([]string{w.returns("workers", "workers-3"), w.returns("workers", "workers-4")}).To(ConsistOf(workers))
	w.look()
	w.Expect(w.reservations()).To(BeEmpty())
	w.untouched()
	for _, m := range w.held() {
		w.Expect(m.Status).To(Equal(status.Deployed))
		w.Expect(m.Annotations).To(HaveKeyWithValue(maas.AnnotationClusterUID, lost))
	}
	w.Expect(w.Machine(others[0]).Annotations).To(HaveKeyWithValue(maas.AnnotationMachine, "others-2"))
	w.clock.SetTime(w.clock.Now().Add(3 * time.Hour))
	w.look()
	w.look()
	w.passes("others-2", 2)
	w.Expect(w.wrote()).To(BeEmpty(), "nobody takes them for orphans later")
}

func nothingBeforeTheLook(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.lose(w.uid())
	w.join("workers", "workers-y", "workers-3", infrav1.MaasMachineSpec{})
	w.passes("workers-3", 3)
	w.Expect(w.holds("workers-3")).To(BeEmpty())
	w.expect("workers-3", "Ready False WaitingForRestoredMachines", "waiting until MaasCluster demo has found the running machines")
	w.Expect(w.wrote()).To(BeEmpty())
}

func nothingWithoutMAAS(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.lose(w.uid())
	accept := w.refuse("machines.read", "", http.StatusBadGateway, "a proxy's page")
	for range 3 {
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		_ = w.glance()
	}
	w.Expect(w.cluster().Annotations).NotTo(HaveKey(infrav1.RestoredAtAnnotation))
	w.Expect(w.wrote()).To(BeEmpty())
	accept()
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.look()
	w.Expect(w.reservations()).To(HaveLen(3))
	w.untouched()
}

func diesOverRestore(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	lost, workers := w.uid(), w.systemIDs("workers")
	for n := 1; ; n++ {
		burnt := false
		for _, after := range []bool{false, true} {
			w.lose(lost)
			f := &fuse{left: n, after: after}
			w.kube = w.fused(f)
			w.restart()
			_ = w.glance()
			w.kube = w.client
			w.restart()
			w.look()
			w.join("workers", "workers-y", "new-1", infrav1.MaasMachineSpec{})
			w.die("new-1", f)
			burnt = burnt || f.burnt
			w.look()
			w.join("workers", "workers-y", "new-2", infrav1.MaasMachineSpec{})
			for range 4 {
				w.pass("new-1")
				w.pass("new-2")
				w.look()
			}
			w.Expect([]string{w.holds("new-1"), w.holds("new-2")}).To(ConsistOf(workers), "%d %t: %v", n, after, w.told())
			w.expect("new-1", "Ready True Ready", "")
			w.expect("new-2", "Ready True Ready", "")
			w.Expect(w.reservations()).To(HaveLen(1), "the other pool's")
			w.untouched()
		}
		if !burnt {
			w.Expect(n).To(BeNumerically(">", 6))
			return
		}
	}
}

func allAtOnce(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	workers := w.systemIDs("workers")
	w.lose(w.uid())
	w.look()
	names := []string{"new-1", "new-2", "new-3"}
	for _, name := range names {
		w.join("workers", "workers-y", name, infrav1.MaasMachineSpec{})
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	for range 8 {
		var together sync.WaitGroup
		for _, name := range names {
			together.Go(func() {
				_, _ = w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: name}})
			})
		}
		together.Wait()
		w.tick()
	}
	for _, name := range names {
		w.passes(name, 2)
		w.expect(name, "Ready True Ready", "")
	}
	w.Expect([]string{w.holds("new-1"), w.holds("new-2"), w.holds("new-3")}).To(ConsistOf(append(workers, "dddddd")))
	w.Expect(w.count("allocate")).To(Equal(1))
	w.Expect(w.count("release")).To(BeZero())
}

func moreThanWanted(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.lose(w.uid())
	w.look()
	had := w.returns("workers", "new-1")
	for range 3 {
		w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
		w.look()
	}
	w.untouched()
	left := slices.DeleteFunc(w.systemIDs("workers"), func(id string) bool { return id == had })
	w.Expect(w.restored()).To(And(
		HavePrefix("False/WaitingForMaasMachines: No MaasMachine has taken over 2 running machines: "), ContainSubstring("("+left[0]+") of workers"),
		ContainSubstring("kubectl annotate maascluster -n "+w.namespace+" demo reserved-machine.infrastructure.cluster.x-k8s.io/ID-")))
	infra := w.cluster()
	reservation.Records.Remove(infra, left[0])
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	for range 3 {
		w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
		w.look()
	}
	w.Expect(w.Machine(left[0]).Owner).To(BeEmpty(), "a person said so")
	w.Expect(w.Machine(had).Status).To(Equal(status.Deployed))
	w.returns("others", "others-2")
	w.look()
	w.Expect(w.restored()).To(Equal("True/AsExpected: "))
}

func oneMore(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.lose(w.uid())
	w.look()
	w.returns("others", "others-2")
	w.Expect(w.wrote()).To(Equal([]string{"set_workload_annotations"}))
	w.Expect(w.returns("others", "others-3")).To(Equal("dddddd"))
}

func onlyTheName(t *testing.T, cfg *rest.Config) {
	for name, restoredFrom := range map[string]string{"it is new": "", "it takes the place of another one": "11111111-2222-3333-4444-555555555555"} {
		t.Run(name, func(t *testing.T) {
			w := running(t, cfg)
			w.lose(restoredFrom)
			w.look()
			w.Expect(w.reservations()).To(BeEmpty())
			w.Expect(w.returns("workers", "workers-3")).To(Equal("dddddd"))
			w.clock.SetTime(w.clock.Now().Add(3 * time.Hour))
			w.look()
			w.Expect(w.held()).To(HaveLen(4), "who lost the others may still restore them")
		})
	}
}

func onlyTheMarks(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	lost, marks := w.uid(), maps.Clone(w.Machine(w.systemIDs("others")[0]).Annotations)
	w.edit("dddddd", func(m *inventory.Machine) {
		m.Status, m.Owner, m.Annotations = status.Deployed, "provider", marks
	})
	w.lose(lost)
	w.look()
	w.Expect(w.reservations()).NotTo(HaveKey("dddddd"))
	w.Expect(w.reservations()).To(HaveLen(3))
}

func notInstalledYet(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.slow(faults.BootHangs)
	w.join("workers", "workers-x", "workers-3", infrav1.MaasMachineSpec{})
	w.passes("workers-3", 4)
	w.Expect(w.Machine("dddddd").Status).To(Equal(status.Deploying))
	w.lose(w.uid())
	w.look()
	w.Expect(w.reservations()).To(HaveLen(3))
	for range 3 {
		w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
		w.look()
	}
	w.Expect(w.Machine("dddddd").Owner).To(BeEmpty())
	w.Expect(w.count("release")).To(Equal(1))
}

func heirGone(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	others := w.systemIDs("others")
	w.lose(w.uid())
	w.look()
	infra := w.cluster()
	record := reservation.Records.Of(infra)[others[0]]
	record.Successor = "gone"
	w.Expect(reservation.Records.Set(infra, others[0], record)).To(Succeed())
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.Expect(w.returns("others", "others-2")).To(Equal(others[0]))
}

func lostTwice(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	lost, others := w.uid(), w.systemIDs("others")
	w.lose(lost)
	w.look()
	w.returns("others", "others-2")
	w.lose(lost)
	w.look()
	w.Expect(w.reservations()).To(HaveLen(3))
	w.Expect(w.returns("others", "others-3")).To(Equal(others[0]))
	w.untouched()
}

func virtualFoundAgain(t *testing.T, cfg *rest.Config) {
	w := newLXD(t, cfg, lxdHost{name: "h1", zone: "north"})
	w.owned()
	w.look()
	vmOf := func(name string) {
		w.addVM(name)
		m := w.machine(name)
		m.Labels[clusterv1.MachineDeploymentNameLabel] = "virtual"
		w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
		w.until("Ready True Ready", name)
	}
	vmOf("virtual-1")
	was, provider := w.holds("virtual-1"), *w.machine("virtual-1").Spec.ProviderID
	w.lose(w.uid())
	w.look()
	vmOf("virtual-2")
	w.Expect(w.holds("virtual-2")).To(Equal(was))
	w.Expect(*w.machine("virtual-2").Spec.ProviderID).To(Equal(provider))
	w.Expect(w.vms()).To(HaveLen(1))
	w.untouched()
	w.clock.SetTime(w.clock.Now().Add(3 * time.Hour))
	w.look()
	w.Expect(w.vms()).To(HaveLen(1))
	w.leaves("virtual-2")
	w.Expect(w.vms()).To(BeEmpty(), "it is still one of ours, and deleted at its end")
}

func olderMarks(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	others := w.systemIDs("others")[0]
	w.edit(others, func(m *inventory.Machine) {
		m.Annotations = maps.Clone(m.Annotations)
		delete(m.Annotations, maas.AnnotationPool)
		m.Annotations[maas.AnnotationMachine] = "very-long-others-x7k2p-9d8fm"
	})
	w.lose(w.uid())
	w.look()
	w.Expect(w.reservations()[others].Deployment).To(Equal("very-long-others"))
}

func marksCompleted(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	others := w.systemIDs("others")[0]
	w.edit(others, func(m *inventory.Machine) {
		m.Annotations = maps.Clone(m.Annotations)
		delete(m.Annotations, maas.AnnotationPool)
	})
	w.wrote()
	for range 3 {
		w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
		w.passes("others-1", 1)
	}
	w.Expect(w.wrote()).To(Equal([]string{"set_workload_annotations"}))
	w.Expect(w.Machine(others).Annotations).To(HaveKeyWithValue(maas.AnnotationPool, "others"))
}

func setFoundAgain(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.join("", "inplace", "inplace-1", infrav1.MaasMachineSpec{})
	w.passes("inplace-1", 4)
	w.Expect(w.holds("inplace-1")).To(Equal("dddddd"))
	w.lose(w.uid())
	w.look()
	w.join("", "inplace", "inplace-2", infrav1.MaasMachineSpec{})
	w.passes("inplace-2", 4)
	w.Expect(w.holds("inplace-2")).To(Equal("dddddd"))
	w.untouched()
}

func offMeanwhile(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	others := w.systemIDs("others")[0]
	w.lose(w.uid())
	w.edit(others, func(m *inventory.Machine) { m.PowerState = "off" })
	w.look()
	w.Expect(w.returns("others", "others-2")).To(Equal(others))
	w.Expect(w.wrote()).To(ConsistOf("set_workload_annotations", "power_on"))
}

func restoredByAnother(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.lose(w.uid())
	w.credentials(w.Key("bob"))
	w.restart()
	w.look()
	w.Expect(w.reservations()).To(BeEmpty())
	w.Expect(w.held()).To(HaveLen(3))
	w.Expect(w.wrote()).To(BeEmpty())
}

func restoredDeleted(t *testing.T, cfg *rest.Config) {
	w := running(t, cfg)
	w.lose(w.uid())
	w.look()
	w.returns("others", "others-2")
	w.leaves("others-2")
	w.Expect(w.client.Delete(t.Context(), w.cluster())).To(Succeed())
	for range 6 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_ = w.glance()
	}
	w.Expect(w.held()).To(BeEmpty())
	w.Expect(client.IgnoreNotFound(w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "demo"}, &infrav1.MaasCluster{}))).To(Succeed())
}

func addressFoundAgain(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	w.owned()
	w.look()
	static := func(name string) string {
		w.addStatic(name, infrav1.StaticIPConfig{IP: "10.8.0.7"})
		m := w.machine(name)
		m.Labels[clusterv1.MachineDeploymentNameLabel] = "fixed"
		w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
		w.until("Ready True Ready", name)
		return w.holds(name)
	}
	was := static("fixed-1")
	w.lose(w.uid())
	w.look()
	w.Expect(static("fixed-2")).To(Equal(was))
	w.expect("fixed-2", "StaticIPAssigned True StaticIPAssigned", "10.8.0.7")
	w.untouched()
	w.leaves("fixed-2")
	w.Expect(w.modes(was, 0)).To(Equal([]string{"auto"}))
}
