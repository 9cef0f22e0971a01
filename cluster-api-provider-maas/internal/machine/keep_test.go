// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestKeep covers rollouts that delete a machine before its successor is created, in a MAAS without free machines.
// Cluster API creates the successor when the old Machine is gone.
func TestKeep(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a full rack rolls out next to a pool that needs machines, each machine should stay in its pool": fullRackRolls,
		"When the process dies between any two reconciles, each machine should stay in its pool":              fullRackRollsWithCrashes,
		"When MAAS takes long to release a machine, it should be checked once a second":                       looksOften,
		"When another user allocates the machine first, it should report that and keep no reservation":        somebodyWasFaster,
		"When the answer to the second allocation is lost, the machine should still be reserved":              keptWithoutAnswer,
		"When the MachineDeployment changes in any way that rolls it out, the machine should be reserved":     somethingElse,
		"When nothing replaces a deleted MaasMachine, its machine should be released":                         notSucceeded,
		"When no successor is created, the machine should eventually be released":                             nobodyComes,
		"When the cluster is deleted, no machine should be reserved":                                          keptOfDeleted,
		"When the successor requests more resources, it should get another machine":                           asksForMore,
		"When two MaasMachines may claim a machine, only one should get it":                                   twoHeirs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cfg)
		})
	}
}

// join creates a MaasMachine of a MachineSet of a MachineDeployment.
func (w *world) join(deployment, set, name string, spec infrav1.MaasMachineSpec) {
	w.t.Helper()
	spec.Erase = &infrav1.EraseConfig{Mode: "Quick"}
	w.add(name, spec)
	m := w.machine(name)
	m.Labels[clusterv1.MachineDeploymentNameLabel], m.Labels[clusterv1.MachineSetNameLabel] = deployment, set
	m.Annotations = map[string]string{clusterv1.TemplateClonedFromNameAnnotation: set}
	w.Expect(w.client.Update(w.t.Context(), m)).To(Succeed())
}

func (w *world) holds(name string) string { return ptr.Deref(w.machine(name).Spec.SystemID, "") }

// rolls creates the MachineDeployment "workers" and its MachineSet "first". The functions in was edit the template of
// both. Then the template of the MachineDeployment gets the infrastructure template "second", and mutate edits it.
func (w *world) rolls(mutate func(*clusterv1.MachineDeployment), was ...func(*clusterv1.MachineDeployment)) {
	w.t.Helper()
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: "demo", Replicas: ptr.To[int32](3), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
	}}
	md.Spec.Template.Labels = map[string]string{"a": "b"}
	md.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("bootstrap")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasMachineTemplate", Name: "first"}}
	md.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}}
	for _, change := range was {
		change(md)
	}
	w.create(&clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Spec: clusterv1.MachineSetSpec{
		ClusterName: "demo", Selector: md.Spec.Selector, Template: *md.Spec.Template.DeepCopy()}})
	md.Spec.Template.Spec.InfrastructureRef.Name = "second"
	if mutate != nil {
		mutate(md)
	}
	w.create(md)
}

// fullRack returns a fixture in which the first MachineSet of a MachineDeployment has all three machines of MAAS.
func fullRack(t *testing.T, cfg *rest.Config, mutate func(*clusterv1.MachineDeployment), was ...func(*clusterv1.MachineDeployment)) *world {
	t.Helper()
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa"}, simtest.Machine{ID: "bbbbbb"}, simtest.Machine{ID: "cccccc"})
	w.owned()
	w.look()
	w.rolls(mutate, was...)
	for _, name := range []string{"old-1", "old-2", "old-3"} {
		w.join("workers", "first", name, infrav1.MaasMachineSpec{})
		w.passes(name, 4)
		w.expect(name, "Ready True Ready", "")
	}
	return w
}

// leaves deletes a MaasMachine. In each round, the others are reconciled before it.
func (w *world) leaves(name string, others ...string) {
	w.t.Helper()
	w.remove(name)
	for range 8 {
		for _, other := range others {
			w.pass(other)
		}
		if w.gone(name) {
			return
		}
		w.pass(name)
	}
	w.Expect(w.gone(name)).To(BeTrue(), "%v", w.told())
}

func (w *world) reservations() map[string]reservation.Record {
	return reservation.Records.Of(w.cluster())
}

func roll(t *testing.T, cfg *rest.Config, between func(*world)) {
	t.Helper()
	w := fullRack(t, cfg, nil)
	w.join("others", "first", "greedy", infrav1.MaasMachineSpec{})
	w.pass("greedy")
	for _, i := range []string{"1", "2", "3"} {
		was := w.holds("old-" + i)
		w.remove("old-" + i)
		for range 8 {
			between(w)
			w.pass("greedy")
			if !w.gone("old-" + i) {
				w.pass("old-" + i)
			}
			w.look()
		}
		w.Expect(w.gone("old-"+i)).To(BeTrue(), "%v", w.told())
		w.Expect(w.reservations()).To(HaveKey(was))
		w.Expect(w.Machine(was).Status).To(Equal(status.Allocated))
		w.join("workers", "second", "new-"+i, infrav1.MaasMachineSpec{})
		for range 6 {
			between(w)
			w.pass("greedy")
			w.pass("new-" + i)
			w.look()
		}
		w.Expect(w.holds("new-" + i)).To(Equal(was))
		w.expect("new-"+i, "Ready True Ready", "")
		w.Expect(w.reservations()).To(BeEmpty())
		w.Expect(w.holds("greedy")).To(BeEmpty())
	}
	for _, name := range []string{"greedy", "new-1", "new-2", "new-3"} {
		w.leaves(name)
	}
	w.Expect(w.held()).To(BeEmpty(), "nothing is leaked")
	for _, m := range w.Machines() {
		w.Expect(m.PowerState).To(Equal("off"), "what is given back is switched off")
	}
}

func fullRackRolls(t *testing.T, cfg *rest.Config) { roll(t, cfg, func(*world) {}) }

func fullRackRollsWithCrashes(t *testing.T, cfg *rest.Config) { roll(t, cfg, (*world).restart) }

func looksOften(t *testing.T, cfg *rest.Config) {
	w := fullRack(t, cfg, nil)
	w.slow(faults.SlowRelease)
	was := w.holds("old-1")
	w.remove("old-1")
	result := w.reconcile("old-1", time.Second)
	w.Expect(w.Machine(was).Status).To(Equal(status.DiskErasing), "it may be another's next, if somebody is faster")
	w.Expect(result.RequeueAfter).To(BeNumerically("<=", time.Second))
}

func somebodyWasFaster(t *testing.T, cfg *rest.Config) {
	w := fullRack(t, cfg, nil)
	was := w.holds("old-1")
	w.remove("old-1")
	w.passes("old-1", 1)
	w.edit(was, func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName, m.Annotations = status.Deployed, "bob", "", nil
	})
	w.passes("old-1", 2)
	w.Expect(w.gone("old-1")).To(BeTrue())
	w.Expect(w.reservations()).To(BeEmpty())
	w.Expect(w.Machine(was).Owner).To(Equal("bob"))

	w.remove("old-2")
	w.passes("old-2", 1)
	w.refuse("machines.allocate", "", 409, "No machine with system ID available.")
	w.told()
	w.passes("old-2", 3)
	w.Expect(w.gone("old-2")).To(BeTrue())
	w.Expect(w.told()).To(ContainElement(ContainSubstring("MachineNotKept ")))
	w.Expect(w.reservations()).To(BeEmpty())
}

func keptWithoutAnswer(t *testing.T, cfg *rest.Config) {
	w := fullRack(t, cfg, nil)
	was := w.holds("old-1")
	w.remove("old-1")
	w.passes("old-1", 1)
	simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.LostAnswer, Operation: "machines.allocate", Count: 1})
	w.passes("old-1", 1)
	w.Expect(w.gone("old-1")).To(BeFalse())
	w.Expect(w.Machine(was).Status).To(Equal(status.Allocated))
	w.restart()
	w.wrote()
	w.passes("old-1", 2)
	w.Expect(w.gone("old-1")).To(BeTrue())
	w.Expect(w.wrote()).To(BeEmpty(), "it has the machine already: released once more, somebody else could get it")
	w.join("workers", "second", "new", infrav1.MaasMachineSpec{})
	w.passes("new", 4)
	w.Expect(w.holds("new")).To(Equal(was))
	w.expect("new", "Ready True Ready", "")
}

// unchanged keeps the template of a MachineDeployment as it was.
func unchanged(md *clusterv1.MachineDeployment) {
	md.Spec.Template.Spec.InfrastructureRef.Name = "first"
}

// bootstrapped gives each Machine its own bootstrap config, and with it its own Secret.
func bootstrapped(md *clusterv1.MachineDeployment) {
	md.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{
		ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "first"}}
}

func somethingElse(t *testing.T, cfg *rest.Config) {
	for name, change := range map[string]func(*clusterv1.MachineDeployment){
		"another version": func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Version = "v1.36.3" },
		"another zone":    func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.FailureDomain = "north" },
		"another user-data": func(md *clusterv1.MachineDeployment) {
			md.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("second")
		},
		"another bootstrap": bootstrapped,
		"an unchanged template with a rollout time": func(md *clusterv1.MachineDeployment) {
			// The time must be after the creation of the MachineSet, which has whole seconds, and long before the
			// time of the simulated clock.
			md.Spec.Rollout.After = metav1.NewTime(time.Now().Add(2 * time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fullRack(t, cfg, func(md *clusterv1.MachineDeployment) {
				unchanged(md)
				change(md)
			})
			was := w.holds("old-1")
			w.leaves("old-1")
			w.Expect(w.reservations()).To(HaveKey(was))
			w.Expect(w.Machine(was).Status).To(Equal(status.Allocated))
		})
	}
}

func notSucceeded(t *testing.T, cfg *rest.Config) {
	for name, mutate := range map[string]func(*clusterv1.MachineDeployment){
		"new ones come first": func(md *clusterv1.MachineDeployment) {
			md.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("34%"))
		},
		"there is no roll-out": unchanged,
		"there will be one": func(md *clusterv1.MachineDeployment) {
			unchanged(md)
			md.Spec.Rollout.After = metav1.NewTime(time.Now().Add(24 * time.Hour))
		},
		"no replicas are desired": func(md *clusterv1.MachineDeployment) { md.Spec.Replicas = ptr.To[int32](0) },
	} {
		t.Run(name, func(t *testing.T) { givenBack(t, fullRack(t, cfg, mutate)) })
	}
	t.Run("each Machine has its own bootstrap Secret", func(t *testing.T) { givenBack(t, fullRack(t, cfg, unchanged, bootstrapped)) })
	t.Run("the Machine is unhealthy", func(t *testing.T) {
		w := fullRack(t, cfg, nil)
		owner := &clusterv1.Machine{}
		w.get("old-1", owner)
		owner.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: "WaitingForRemediation", LastTransitionTime: metav1.Now()}}
		w.Expect(w.client.Status().Update(t.Context(), owner)).To(Succeed())
		givenBack(t, w)
	})
}

// givenBack checks that the machine of a deleted MaasMachine is not reserved.
func givenBack(t *testing.T, w *world) {
	t.Helper()
	was := w.holds("old-1")
	w.leaves("old-1")
	w.Expect(w.Machine(was).Status).To(Equal(status.Ready))
	w.Expect(w.reservations()).To(BeEmpty())
}

func nobodyComes(t *testing.T, cfg *rest.Config) {
	w := fullRack(t, cfg, nil)
	was := w.holds("old-1")
	w.leaves("old-1")
	w.join("workers", "first", "sibling", infrav1.MaasMachineSpec{})
	w.passes("sibling", 2)
	w.Expect(w.holds("sibling")).To(BeEmpty(), "one of the same set is no successor")
	w.remove("sibling")
	w.passes("sibling", 1)
	for range 8 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.tick()
		w.look()
	}
	w.Expect(w.reservations()).To(HaveKey(was))
	w.Expect(w.Machine(was).Status).To(Equal(status.Allocated), "nobody has it, and the sweep leaves it alone as long as it is kept")
	for range 12 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.tick()
		w.look()
	}
	w.Expect(w.reservations()).To(BeEmpty())
	w.tick()
	w.Expect(w.Machine(was).Status).To(Equal(status.Ready))
	w.Expect(strings.Join(w.told(), " ")).To(And(ContainSubstring("ReservationEnded "), ContainSubstring("no successor claimed it"), ContainSubstring("OrphanReleased ")))
}

func keptOfDeleted(t *testing.T, cfg *rest.Config) {
	w := fullRack(t, cfg, nil)
	w.leaves("old-1")
	w.Expect(w.reservations()).To(HaveLen(1))
	w.Expect(w.client.Delete(t.Context(), w.cluster())).To(Succeed())
	w.look()
	w.leaves("old-2")
	w.leaves("old-3")
	for range 6 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.tick()
		w.look()
	}
	w.tick()
	w.Expect(w.held()).To(BeEmpty())
}

func asksForMore(t *testing.T, cfg *rest.Config) {
	w := fullRack(t, cfg, nil)
	was := w.holds("old-1")
	w.leaves("old-1")
	w.join("workers", "second", "new", infrav1.MaasMachineSpec{MinCPU: ptr.To(99), MinMemory: ptr.To(2048)})
	w.passes("new", 2)
	w.Expect(w.holds("new")).To(BeEmpty())
	w.Expect(w.Machine(was).Status).To(Equal(status.Allocated))
}

func twoHeirs(t *testing.T, cfg *rest.Config) {
	w := fullRack(t, cfg, nil)
	was := w.holds("old-1")
	w.leaves("old-1")
	w.join("workers", "second", "new-1", infrav1.MaasMachineSpec{})
	w.join("workers", "second", "new-2", infrav1.MaasMachineSpec{})
	infra := w.cluster()
	record := reservation.Records.Of(infra)[was]
	record.Successor = string(w.machine("new-2").UID)
	w.Expect(reservation.Records.Set(infra, was, record)).To(Succeed())
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.passes("new-1", 2)
	w.Expect(w.holds("new-1")).To(BeEmpty(), "the other one has signed")
	w.passes("new-2", 4)
	w.Expect(w.holds("new-2")).To(Equal(was))
	w.expect("new-2", "Ready True Ready", "")
	w.Expect(w.machine("new-2").Annotations).To(HaveKey(machine.UIDAnnotation))
}
