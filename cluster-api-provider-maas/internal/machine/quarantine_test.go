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

// TestQuarantine is about machines on which deployments fail: in the Rack, that is the cheapest one, which MAAS would pick first.
func TestQuarantine(t *testing.T) {
	cfg := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When the process ends, a machine that failed should stay set aside":                           outlives,
		"When a machine failed and the image runs elsewhere, no cluster should take it until untagged": confined,
		"When the key is of a plain user, the cluster should keep it and say so":                       confinedAlone,
		"When the image runs nowhere, no machine should be blamed":                                     notToBlame,
		"When the process dies over a failure, it should be counted once":                              countedOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

const bad = "aaaaa1"

// newSick is a rack whose cheapest machine can't be deployed, in a cluster that the cluster reconciler looks after.
func newSick(t *testing.T, cfg *rest.Config, user string) *rack {
	k := newRack(t, cfg, user)
	simtest.FailDeployments(t, k.Simulator, "one", 0)
	k.owned()
	return k
}

// owned makes the MaasCluster that of the Cluster, with an endpoint.
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

// look lets the cluster reconciler look once.
func (w *world) look() {
	w.t.Helper()
	w.Expect(w.glance()).To(Succeed())
}

// glance is a look that may fail.
func (w *world) glance() error {
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

func (k *rack) runsOn(name string) string {
	k.t.Helper()
	k.until("Ready True Ready", name)
	return *k.machine(name).Spec.SystemID
}

func outlives(t *testing.T, cfg *rest.Config) {
	k := newSick(t, cfg, "alice")
	k.addPlain("first")
	k.Expect(k.runsOn("first")).NotTo(Equal(bad))
	k.Expect(quarantine.Of(k.cluster())).To(HaveKeyWithValue(bad, HaveField("Failures", 1)))
	k.leave("first")
	k.restart()
	k.addPlain("second")
	k.Expect(k.runsOn("second")).NotTo(Equal(bad))
	k.Expect(k.machine("second").Status.Attempts).To(BeZero(), "it was never tried")
}

func confined(t *testing.T, cfg *rest.Config) {
	k := newSick(t, cfg, "admin")
	k.addPlain("first")
	k.runsOn("first")
	k.told()
	k.look()
	k.Expect(k.Machine(bad).Tags).To(ContainElement(quarantine.Tag))
	k.Expect(k.quarantined(metav1.ConditionTrue)).To(ContainSubstring("maas $ADMIN tag update-nodes hypershift-quarantine remove=" + bad))
	k.Expect(strings.Join(k.told(), "\n")).To(ContainSubstring("for all clusters"))
	before := k.cluster().ResourceVersion
	k.look()
	k.Expect(k.cluster().ResourceVersion).To(Equal(before), "a settled system writes nothing")

	other := newWorldAt(t, cfg, k.endpoint, k.Key("admin"))
	other.transport = k.direct
	other.restart()
	there := &rack{Simulator: k.Simulator, direct: k.direct, cfg: cfg, world: other}
	there.addPlain("m")
	there.runsOn("m")
	k.Expect(*other.machine("m").Spec.SystemID).NotTo(Equal(bad))
	k.Expect(other.machine("m").Status.Attempts).To(BeZero(), "another cluster never tries it")

	region, err := maas.NewClient(maas.Config{Endpoint: k.endpoint(), APIKey: k.Key("admin"), Transport: k.direct})
	k.Expect(err).NotTo(HaveOccurred())
	_, err = region.UpdateTagMachines(t.Context(), quarantine.Tag, nil, []string{bad})
	k.Expect(err).NotTo(HaveOccurred())
	k.Faults.Clear()
	k.clock.SetTime(k.clock.Now().Add(2 * time.Hour))
	k.look()
	k.quarantined(metav1.ConditionFalse)
	k.restart()
	k.addPlain("mended")
	k.Expect(k.runsOn("mended")).To(Equal(bad))
}

func confinedAlone(t *testing.T, cfg *rest.Config) {
	k := newSick(t, cfg, "alice")
	k.addPlain("first")
	k.runsOn("first")
	infra := k.cluster()
	for _, limit := range []string{"0", "2", "1"} {
		k.Expect(meta.FindStatusCondition(k.cluster().Status.Conditions, cluster.ConditionQuarantine)).To(BeNil())
		infra.Annotations[quarantine.AfterAnnotation] = limit
		k.Expect(k.client.Update(t.Context(), infra)).To(Succeed())
		k.told()
		k.look()
		infra = k.cluster()
	}
	k.Expect(k.Machine(bad).Tags).To(BeEmpty())
	k.Expect(strings.Join(k.told(), "\n")).To(ContainSubstring("for this cluster only, since the key is not of a MAAS administrator"))
	undo := "failed-machine.infrastructure.cluster.x-k8s.io/" + bad
	k.Expect(k.quarantined(metav1.ConditionTrue)).To(ContainSubstring("kubectl annotate maascluster -n " + k.namespace + " demo " + undo + "-"))
	k.clock.SetTime(k.clock.Now().Add(200 * time.Hour))
	k.restart()
	k.look()
	k.addPlain("second")
	k.Expect(k.runsOn("second")).NotTo(Equal(bad))
	k.Expect(k.machine("second").Status.Attempts).To(BeZero())

	infra = k.cluster()
	delete(infra.Annotations, undo)
	k.Expect(k.client.Update(t.Context(), infra)).To(Succeed())
	k.Faults.Clear()
	k.restart()
	k.look()
	k.quarantined(metav1.ConditionFalse)
	k.addPlain("mended")
	k.Expect(k.runsOn("mended")).To(Equal(bad))
	k.Expect(quarantine.Of(k.cluster())).To(BeEmpty())
}

func notToBlame(t *testing.T, cfg *rest.Config) {
	k := newRack(t, cfg, "admin")
	simtest.FailDeployments(t, k.Simulator, "*", 0)
	k.owned()
	k.addPlain("m")
	k.until("Ready False DeployAttemptsExhausted", "m")
	k.look()
	k.Expect(quarantine.Of(k.cluster())).To(HaveLen(3))
	for _, m := range k.Machines() {
		k.Expect(m.Tags).NotTo(ContainElement(quarantine.Tag))
	}
	k.clock.SetTime(k.clock.Now().Add(200 * time.Hour))
	k.look()
	k.Expect(quarantine.Of(k.cluster())).To(BeEmpty(), "forgotten")
}

func countedOnce(t *testing.T, cfg *rest.Config) {
	k := newSick(t, cfg, "alice")
	for n := 1; ; n++ {
		name := fmt.Sprintf("m-%d", n)
		k.addPlain(name)
		f := &fuse{left: n}
		k.die(name, f)
		k.runsOn(name)
		k.Expect(quarantine.Of(k.cluster())).To(HaveKeyWithValue(bad, HaveField("Failures", 1)), name)
		k.leave(name)
		infra := k.cluster()
		quarantine.Remove(infra, bad)
		k.Expect(k.client.Update(t.Context(), infra)).To(Succeed())
		k.restart()
		if !f.burnt {
			k.Expect(n).To(BeNumerically(">", 6))
			return
		}
	}
}
