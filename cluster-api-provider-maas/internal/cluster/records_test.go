// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/reservation"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// remember writes a record to the MaasCluster, as the MaasMachine reconciler does.
func (w *world) remember(write func(*infrav1.MaasCluster) error) {
	w.t.Helper()
	infra := w.infra()
	w.Expect(write(infra)).To(Succeed())
	w.Expect(w.client.Update(w.t.Context(), infra)).To(Succeed())
}

// unsuited creates a quarantine record for a machine on which three deployments failed. The image of these deployments
// runs on another machine.
func (w *world) unsuited(id string) {
	w.t.Helper()
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, nil)
	w.reconciler.QuarantineAfter = 3
	good := w.controlPlane("good", true)
	good.Spec.SystemID = ptr.To("another")
	w.Expect(w.client.Update(w.t.Context(), good)).To(Succeed())
	w.runs(good, true)
	w.remember(func(infra *infrav1.MaasCluster) error {
		return quarantine.Records.Set(infra, id, quarantine.Record{Hostname: "mole", Failures: 3, Last: w.clock.Now(), Image: "ubuntu/noble"})
	})
}

func quarantines(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "mole01", Hostname: "mole"})
	w.unsuited("mole01")
	w.reconcile(0)
	w.expect(cluster.ConditionQuarantine, "True DeploymentsFailed",
		"machine mole (mole01) is quarantined: 3 deployments of ubuntu/noble failed on it, although the image runs on other machines; to end the quarantine: maas $ADMIN tag update-nodes hypershift-quarantine remove=mole01")
	w.expect("Ready", "True Ready", "")
	w.Expect(w.tagsOf("mole01")).To(ContainElement(quarantine.Tag))
	w.Expect(w.recorder.Events).To(Receive(ContainSubstring("MachineQuarantined ")))

	w.reconcile(8 * 24 * time.Hour)
	w.expect(cluster.ConditionQuarantine, "True DeploymentsFailed", "mole01")
	w.Change("mole01", func(m *inventory.Machine) { m.Tags = nil })
	w.reconcile(time.Minute)
	w.expect(cluster.ConditionQuarantine, "False None", "")
	w.Expect(quarantine.Records.Of(w.infra())).To(BeEmpty(), "who takes the tag off ends it")
}

func quarantinesByPlainUser(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "mole01", Hostname: "mole"})
	w.credentials(w.Key("alice"))
	w.unsuited("mole01")
	w.reconcile(0)
	w.expect(cluster.ConditionQuarantine, "True DeploymentsFailed", "to end the quarantine: kubectl annotate maascluster")
	w.Expect(w.tagsOf("mole01")).NotTo(ContainElement(quarantine.Tag))
	w.remember(func(infra *infrav1.MaasCluster) error { quarantine.Records.Remove(infra, "mole01"); return nil })
	w.reconcile(time.Minute)
	w.expect(cluster.ConditionQuarantine, "False None", "")
}

func neverQuarantined(t *testing.T, cfg *rest.Config) {
	for name, change := range map[string]func(*infrav1.MaasCluster, *quarantine.Record){
		"its failures stay below the limit": func(_ *infrav1.MaasCluster, r *quarantine.Record) { r.Failures = 2 },
		"its image runs nowhere":            func(_ *infrav1.MaasCluster, r *quarantine.Record) { r.Image = "custom/bad" },
		"the cluster disables the limit": func(infra *infrav1.MaasCluster, _ *quarantine.Record) {
			infra.Annotations[quarantine.AfterAnnotation] = "0"
		},
		"the cluster sets a limit of four": func(infra *infrav1.MaasCluster, _ *quarantine.Record) {
			infra.Annotations[quarantine.AfterAnnotation] = "4"
		},
		"its last failure was more than a week ago": func(_ *infrav1.MaasCluster, r *quarantine.Record) {
			r.Last = r.Last.Add(-169 * time.Hour)
			r.Failures = 2
		},
	} {
		w := newWorld(t, cfg, simtest.Machine{ID: "mole01", Hostname: "mole"})
		w.unsuited("mole01")
		forgotten := false
		w.remember(func(infra *infrav1.MaasCluster) error {
			record := quarantine.Records.Of(infra)["mole01"]
			change(infra, &record)
			forgotten = w.clock.Since(record.Last) > 7*24*time.Hour
			return quarantine.Records.Set(infra, "mole01", record)
		})
		w.reconcile(0)
		w.Expect(meta.FindStatusCondition(w.infra().Status.Conditions, cluster.ConditionQuarantine)).To(BeNil(), name)
		w.Expect(w.tagsOf("mole01")).NotTo(ContainElement(quarantine.Tag), name)
		w.Expect(quarantine.Records.Of(w.infra())).To(HaveLen(map[bool]int{true: 0, false: 1}[forgotten]), name)
	}
}

func (w *world) tagsOf(systemID string) []string { return w.Machine(systemID).Tags }

// takesBack covers a machine that MAAS had not released when its MaasMachine was deleted.
func takesBack(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "mole01", Hostname: "mole"})
	machines := &machine.Reconciler{Client: w.client, Reader: w.client, Recorder: w.recorder, Clock: w.clock, Identities: w.reconciler.Identities}
	machines.Default()
	w.reconciler.Machines = machines
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, nil)
	accept := simtest.Refuse(t, w.Simulator, "machine.release", "mole01", http.StatusConflict, "its BMC is dead")
	w.Change("mole01", func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName, m.PowerState = status.Deployed, provider, maas.AllocationKey("gone"), "on"
	})
	w.remember(func(infra *infrav1.MaasCluster) error {
		return handover.Records.Set(infra, "mole01", handover.Record{Machine: "m", UID: "gone", Hostname: "mole", User: provider, Since: w.clock.Now(), Words: "its BMC is dead"})
	})
	w.reconcile(0)
	w.expect(cluster.ConditionReleased, "False MachinesNotReleased", "MAAS has not released machine mole (mole01) of the deleted MaasMachine m")
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeFalse(), "what it holds in MAAS is not forgotten")

	accept()
	for range 10 {
		if w.gone() {
			break
		}
		w.reconcile(11 * time.Minute)
	}
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.Machine("mole01")).To(And(HaveField("Status", status.Ready), HaveField("Owner", BeEmpty())))
}

// restores covers a MaasCluster that replaces a lost one, of which one machine still runs.
func restores(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "mole01", Hostname: "mole"}, simtest.Machine{ID: "rat001"})
	for id, at := range map[string]status.Status{"mole01": status.Deployed, "rat001": status.Allocated} {
		w.Change(id, func(m *inventory.Machine) {
			m.Status, m.Owner, m.AgentName, m.PowerState = at, provider, maas.AllocationKey("of-"+id), "on"
			m.Annotations = map[string]string{maas.AnnotationClusterUID: "lost", maas.AnnotationMachineUID: "of-" + id, maas.AnnotationPool: "workers"}
		})
	}
	w.credentials("consumer:token:wrong")
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, map[string]string{infrav1.RestoredFromAnnotation: "lost"})
	w.reconcile(0)
	w.expect(cluster.ConditionRestored, "False LookingForMachines", "MAAS has not yet reported")
	w.credentials(w.Key(provider))
	w.reconcile(2 * time.Minute)
	w.expect(cluster.ConditionRestored, "False WaitingForMaasMachines", "No MaasMachine has taken over 1 running machine: mole (mole01) of workers. Scale their pools up to as many replicas")
	w.Expect(w.recorder.Events).To(Receive(ContainSubstring("MAASUnauthorized ")))
	w.Expect(w.recorder.Events).To(Receive(ContainSubstring("Found 1 running machine of MaasCluster lost, which this MaasCluster replaces")))
	w.Expect(w.infra().Annotations).To(HaveKeyWithValue(infrav1.OwnerAnnotation, provider))

	w.remember(func(infra *infrav1.MaasCluster) error { reservation.Records.Remove(infra, "mole01"); return nil })
	w.reconcile(time.Minute)
	w.expect(cluster.ConditionRestored, "True AsExpected", "")
}

// keptForNobody covers machines that are reserved for successors. The reservation of a machine that runs for a lost
// cluster has no timeout. It ends with the deletion of the cluster.
func keptForNobody(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "h", Port: 1}}, map[string]string{infrav1.OwnerAnnotation: provider})
	for id, restored := range map[string]bool{"mole01": true, "rat001": false} {
		w.addMachine(simtest.Machine{ID: id, Status: status.Deployed, Owner: provider, AgentName: maas.AllocationKey("of-" + id),
			Annotations: map[string]string{maas.AnnotationClusterUID: string(w.infra().UID), maas.AnnotationMachineUID: "of-" + id}})
		w.remember(func(infra *infrav1.MaasCluster) error {
			return reservation.Records.Set(infra, id, reservation.Record{UID: "of-" + id, Deployment: "workers", Hostname: id, Since: w.clock.Now(), Restored: restored})
		})
	}
	w.reconcile(0)
	w.Expect(w.left()).To(ConsistOf("mole01", "rat001"), "both wait for their pool")
	for range 3 { // The reservation without a successor must end, and an hourly survey must then run.
		w.reconcile(time.Hour)
	}
	w.Expect(reservation.Records.Of(w.infra())).To(And(HaveLen(1), HaveKey("mole01")))
	w.Expect(w.left()).To(Equal([]string{"mole01"}))
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.left()).To(BeEmpty())
}
