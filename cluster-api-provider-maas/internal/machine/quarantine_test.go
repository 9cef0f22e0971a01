// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"strings"
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
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// TestQuarantine covers machines on which deployments fail: in simtest.Rack, the cheapest machine, which MAAS would
// pick first.
func TestQuarantine(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When the process restarts, a machine that failed should stay excluded from allocation":                     outlives,
		"When a machine fails and the image runs elsewhere, no cluster should use it until the tag is removed":      confined,
		"When the key belongs to an unprivileged user, the quarantine should apply to this cluster and be reported": confinedAlone,
		"When the image runs nowhere, no machine should be quarantined":                                             notToBlame,
		"When the process dies while it records a failure, the failure should be counted once":                      countedOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

const bad = "aaaaa1"

// newSick returns a fixture whose cheapest machine cannot be deployed, and whose MaasCluster can be reconciled.
func newSick(t *testing.T, cfg *rest.Config, user string) *world {
	w := newRack(t, cfg, user)
	simtest.FailDeployments(t, w.Simulator, "one", 0)
	w.owned()
	return w
}

// owned makes the Cluster the owner of the MaasCluster, and sets an endpoint.
func (w *world) owned() {
	owner := &clusterv1.Cluster{}
	w.get("demo", owner)
	infra := w.cluster()
	infra.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "demo", UID: owner.UID}}
	infra.Labels = map[string]string{clusterv1.ClusterNameLabel: "demo"}
	infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "h", Port: 1}
	w.Expect(w.client.Update(w.t.Context(), infra)).To(Succeed())
}

func (w *world) cluster() *infrav1.MaasCluster {
	infra := &infrav1.MaasCluster{}
	w.get("demo", infra)
	return infra
}

// look reconciles the MaasCluster once.
func (w *world) look() {
	w.t.Helper()
	w.Expect(w.glance()).To(Succeed())
}

// glance reconciles the MaasCluster once, and returns the error.
func (w *world) glance() error {
	w.tick()
	if w.clusters == nil {
		w.clusters = &cluster.Reconciler{Client: w.kube, Reader: w.client, Identities: w.reconciler.Identities, Recorder: w.recorder, Clock: w.clock,
			QuarantineAfter: 1, Machines: w.reconciler}
	}
	_, err := w.clusters.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: "demo"}})
	return err
}

// quarantined checks the condition of the MaasCluster and returns its message.
func (w *world) quarantined(want metav1.ConditionStatus) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.cluster().Status.Conditions, cluster.ConditionQuarantine)
	w.Expect(c).NotTo(BeNil())
	w.Expect(c.Status).To(Equal(want), c.Message)
	return c.Message
}

func (w *world) runsOn(name string) string {
	w.t.Helper()
	w.until("Ready True Ready", name)
	return *w.machine(name).Spec.SystemID
}

func outlives(t *testing.T, cfg *rest.Config) {
	w := newSick(t, cfg, "alice")
	w.addPlain("first")
	w.Expect(w.runsOn("first")).NotTo(Equal(bad))
	w.Expect(quarantine.Records.Of(w.cluster())).To(HaveKeyWithValue(bad, HaveField("Failures", 1)))
	w.leave("first")
	w.restart()
	w.addPlain("second")
	w.Expect(w.runsOn("second")).NotTo(Equal(bad))
	w.Expect(w.machine("second").Status.Attempts).To(BeZero(), "it was never tried")
}

func confined(t *testing.T, cfg *rest.Config) {
	w := newSick(t, cfg, "admin")
	w.addPlain("first")
	w.runsOn("first")
	w.told()
	w.look()
	w.Expect(w.Machine(bad).Tags).To(ContainElement(quarantine.Tag))
	w.Expect(w.quarantined(metav1.ConditionTrue)).To(ContainSubstring("maas $ADMIN tag update-nodes hypershift-quarantine remove=" + bad))
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("for all clusters"))
	before := w.cluster().ResourceVersion
	w.look()
	w.Expect(w.cluster().ResourceVersion).To(Equal(before), "a settled system writes nothing")

	other := newWorldAt(t, cfg, w.Simulator, w.endpoint, "admin")
	other.addPlain("m")
	other.runsOn("m")
	w.Expect(*other.machine("m").Spec.SystemID).NotTo(Equal(bad))
	w.Expect(other.machine("m").Status.Attempts).To(BeZero(), "another cluster never tries it")

	region, err := maas.NewClient(maas.Config{Endpoint: w.endpoint, APIKey: w.Key("admin"), Transport: w.direct})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = region.UpdateTagMachines(t.Context(), quarantine.Tag, nil, []string{bad})
	w.Expect(err).NotTo(HaveOccurred())
	w.Faults.Clear()
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	w.look()
	w.quarantined(metav1.ConditionFalse)
	w.restart()
	w.addPlain("repaired")
	w.Expect(w.runsOn("repaired")).To(Equal(bad))
}

func confinedAlone(t *testing.T, cfg *rest.Config) {
	w := newSick(t, cfg, "alice")
	w.addPlain("first")
	w.runsOn("first")
	infra := w.cluster()
	for _, limit := range []string{"0", "2", "1"} {
		w.Expect(meta.FindStatusCondition(w.cluster().Status.Conditions, cluster.ConditionQuarantine)).To(BeNil())
		infra.Annotations[quarantine.AfterAnnotation] = limit
		w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
		w.told()
		w.look()
		infra = w.cluster()
	}
	w.Expect(w.Machine(bad).Tags).To(BeEmpty())
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("for this cluster only, because setting tags needs the API key of a MAAS administrator"))
	undo := "failed-machine.infrastructure.cluster.x-k8s.io/" + bad
	w.Expect(w.quarantined(metav1.ConditionTrue)).To(ContainSubstring("kubectl annotate maascluster -n " + w.namespace + " demo " + undo + "-"))
	w.clock.SetTime(w.clock.Now().Add(200 * time.Hour))
	w.restart()
	w.look()
	w.addPlain("second")
	w.Expect(w.runsOn("second")).NotTo(Equal(bad))
	w.Expect(w.machine("second").Status.Attempts).To(BeZero())

	infra = w.cluster()
	delete(infra.Annotations, undo)
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.Faults.Clear()
	w.restart()
	w.look()
	w.quarantined(metav1.ConditionFalse)
	w.addPlain("repaired")
	w.Expect(w.runsOn("repaired")).To(Equal(bad))
	w.Expect(quarantine.Records.Of(w.cluster())).To(BeEmpty())
}

func notToBlame(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	simtest.FailDeployments(t, w.Simulator, "*", 0)
	w.owned()
	w.addPlain("m")
	w.until("Ready False DeployAttemptsExhausted", "m")
	w.look()
	w.Expect(quarantine.Records.Of(w.cluster())).To(HaveLen(3))
	for _, m := range w.Machines() {
		w.Expect(m.Tags).NotTo(ContainElement(quarantine.Tag))
	}
	w.clock.SetTime(w.clock.Now().Add(200 * time.Hour))
	w.look()
	w.Expect(quarantine.Records.Of(w.cluster())).To(BeEmpty(), "forgotten")
}

func countedOnce(t *testing.T, cfg *rest.Config) {
	w := newSick(t, cfg, "alice")
	for n := 1; ; n++ {
		name := fmt.Sprintf("m-%d", n)
		w.addPlain(name)
		f := &fuse{left: n}
		w.die(name, f)
		w.runsOn(name)
		w.Expect(quarantine.Records.Of(w.cluster())).To(HaveKeyWithValue(bad, HaveField("Failures", 1)), name)
		w.leave(name)
		infra := w.cluster()
		quarantine.Records.Remove(infra, bad)
		w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
		w.restart()
		if !f.burnt {
			w.Expect(n).To(BeNumerically(">", 6))
			return
		}
	}
}
