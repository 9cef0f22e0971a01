// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// marks returns the ownership annotations for a MaasMachine of a cluster.
func marks(cluster, machine string) map[string]string {
	return map[string]string{maas.AnnotationClusterUID: cluster, maas.AnnotationMachineUID: machine}
}

// addMachine adds a machine to MAAS.
func (w *world) addMachine(m simtest.Machine) {
	w.t.Helper()
	w.Expect(w.DB.Load([]byte(simtest.Seed(m)), w.Now())).To(Succeed())
}

// addAllocated adds a machine that is allocated for a MaasMachine with this UID. Its annotations may name another
// owner.
func (w *world) addAllocated(id, uid, cluster string, annotations map[string]string) {
	w.t.Helper()
	w.addMachine(simtest.Machine{ID: id})
	w.Change(id, func(m *inventory.Machine) {
		comment := maas.Allocation{UID: uid, ClusterUID: cluster}.Comment("ns/some")
		w.Expect(w.Life.Acquire(m, provider, maas.AllocationKey(uid), comment)).To(Succeed())
		m.Annotations = annotations
	})
}

// left returns the machines with an owner.
func (w *world) left() []string {
	var ids []string
	for _, m := range w.Machines() {
		if m.Owner != "" {
			ids = append(ids, m.SystemID)
		}
	}
	return ids
}

// addAsked creates a MaasCluster for which owner has already requested machines from MAAS, and returns its UID.
func (w *world) addAsked(owner string) string {
	w.t.Helper()
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, map[string]string{infrav1.OwnerAnnotation: owner})
	return string(w.infra().UID)
}

func sweepsUnmarked(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	mine := w.addAsked("provider")
	fresh := w.controlPlane("fresh", false)
	w.addAllocated("unmarked", "gone1", mine, nil)
	w.addAllocated("old-mark", "gone2", mine, marks("another", "dead"))
	w.addAllocated("old-mark-of-ours", "gone3", mine, marks(mine, "dead"))
	w.addAllocated("being-recorded", string(fresh.UID), mine, marks("another", "dead"))
	w.addAllocated("others-marked", "theirs1", "another", marks("another", "theirs1"))
	w.addAllocated("others-unmarked", "theirs2", "another", nil)
	w.addAllocated("others-old-mark", "theirs3", "another", marks(mine, "dead"))
	w.addAllocated("told-wrong", "gone4", mine, nil)
	w.Change("told-wrong", func(m *inventory.Machine) { m.AgentName = maas.AllocationKey("theirs4") })
	w.reconcile(0)
	w.Expect(w.left()).To(ContainElements("unmarked", "old-mark"), "somebody may be about to mark it")
	for range 2 {
		w.reconcile(5 * time.Minute)
		w.Expect(w.left()).To(ConsistOf("being-recorded", "others-marked", "others-unmarked", "others-old-mark", "told-wrong"))
	}
	w.Expect(w.recorder.Events).To(HaveLen(3))
}

// sweepsSecond covers a second machine that was allocated for a MaasMachine because an answer was lost. The sweep
// releases the second one, but none while the MaasMachine is younger than five minutes.
func sweepsSecond(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	mine := w.addAsked("provider")
	m := w.controlPlane("m", true)
	m.Spec.SystemID = ptr.To("first")
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	w.addAllocated("first", string(m.UID), mine, marks(mine, string(m.UID)))
	w.addAllocated("second", string(m.UID), mine, marks(mine, string(m.UID)))
	w.clock.SetTime(m.CreationTimestamp.Time)
	w.reconcile(0)
	w.reconcile(5 * time.Minute)
	w.Expect(w.left()).To(ConsistOf("first", "second"))
	w.reconcile(time.Second)
	w.Expect(w.left()).To(ConsistOf("first"))
}

func orphansFirst(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "free"})
	mine := w.addAsked("provider")
	w.reconcile(0)
	w.addAllocated("orphan", "gone", mine, marks(mine, "gone"))
	accept := simtest.Refuse(t, w.Simulator, "machine.release", "", http.StatusServiceUnavailable, "")
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	for range 3 {
		w.Expect(w.reconcile(time.Second).RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<", time.Minute)), "somebody waits for it")
		w.Expect(w.gone()).To(BeFalse())
	}
	w.expect("Deleting", "True OrphansLeft", "machine host-orphan (orphan) is Allocated: cannot release machine orphan")
	accept()
	w.reconcile(time.Second)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.left()).To(BeEmpty())
}

func unasked(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	mine := w.addAsked("provider")
	w.reconcile(0)
	w.addAllocated("orphan", "gone", mine, marks(mine, "gone"))
	w.credentials("consumer:token:rotated")
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(2 * time.Minute)
	w.Expect(w.gone()).To(BeFalse())
	w.expect("Deleting", "True MAASUnauthorized", "To delete the MaasCluster without this check, remove the annotation "+infrav1.OwnerAnnotation)
	w.credentials(w.Key(provider))
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.left()).To(BeEmpty())

	w = newWorld(t, cfg)
	w.addAsked("provider")
	w.reconcile(0)
	w.credentials("consumer:token:rotated")
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(2 * time.Minute)
	infra := w.infra()
	delete(infra.Annotations, infrav1.OwnerAnnotation)
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.reconcile(time.Second)
	w.Expect(w.gone()).To(BeTrue(), "the way out that the condition names")
}

func anotherUser(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.addAsked("alice")
	w.reconcile(0)
	w.expect("MAASAvailable", "True AsExpected", "")
	m := w.controlPlane("m", true)
	m.Spec.SystemID, m.Annotations = ptr.To("aaaaaa"), map[string]string{infrav1.OwnerAnnotation: "alice"}
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	w.reconcile(time.Minute)
	w.expect("MAASAvailable", "False CredentialsOfAnotherUser", "machine aaaaaa belongs to MAAS user alice")
	w.Expect(w.client.Delete(t.Context(), m)).To(Succeed())
	w.reconcile(time.Minute)
	w.expect("MAASAvailable", "True AsExpected", "")
	for user, want := range map[string]string{"alice": "False CredentialsOfAnotherUser", provider: "True AsExpected"} {
		w.remember(func(infra *infrav1.MaasCluster) error {
			return handover.Records.Set(infra, "aaaaaa", handover.Record{Machine: "m", Hostname: "mole", User: user, Since: w.clock.Now()})
		})
		w.reconcile(time.Minute)
		w.expect("MAASAvailable", want, "")
	}
	w.remember(func(infra *infrav1.MaasCluster) error { handover.Records.Remove(infra, "aaaaaa"); return nil })
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeFalse())
	w.expect("Deleting", "True CredentialsOfAnotherUser", "belongs to user provider")
}
