// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// rivals is a pool that accepts any available machine.
const rivals = "rivals"

// rack is a fixture: a MAAS in which all machines belong to one pool, with this project's provider between MAAS and
// the management cluster.
type rack struct {
	*world
	maas *simulator.Simulator
}

func newRack(w *world, machines ...simtest.Machine) *rack {
	w.t.Helper()
	// Operations take a second each, so that a rival has time to allocate a machine in between.
	s, err := simulator.New(simulator.Options{Seed: []byte(simtest.Seed(machines...)), RandomSeed: 1,
		Durations: lifecycle.Durations{Power: time.Second, Deploy: time.Second}})
	w.Expect(err).NotTo(HaveOccurred())
	w.provider(simtest.Serve(w.t, s), s.Key(simulator.DefaultUsers[1].Name))
	return &rack{world: w, maas: s}
}

// in returns the fixture for a subtest.
func (r *rack) in(t *testing.T) *rack {
	stage := &rack{world: r.world.in(t), maas: r.maas}
	stage.infrastructure = stage.live
	return stage
}

// provider builds this project's provider and runs it until the test ends.
func (w *world) provider(endpoint, key string) {
	w.t.Helper()
	binary := filepath.Join(w.t.TempDir(), "provider")
	out, err := exec.CommandContext(w.t.Context(), "go", "build", "-o", binary, "github.com/openshift/hypershift/cluster-api-provider-maas").CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), string(out))
	// Both poll intervals are equal, so that a rival may reconcile before the pool does.
	w.process(binary, []string{"KUBECONFIG=" + w.kubeconfig, maas.SecretKeyEndpoint + "=" + endpoint, maas.SecretKeyAPIKey + "=" + key},
		"--namespace="+namespace, "--metrics-bind-addr=0", "--health-addr=0", "--poll-interval=1s", "--settled-poll-interval=1s")
}

// live creates the Nodes of deployed machines, as their kubelets do. It also triggers a reconcile of the rivals, and
// fails the test if a rival has a machine.
func (r *rack) live(ctx context.Context, g Gomega) {
	for _, m := range r.maas.Machines() {
		if m.Status == status.Deployed {
			r.join(ctx, g, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Hostname}})
		}
	}
	for _, rival := range r.machinesOf(ctx, g, rivals) {
		if rival.Spec.SystemID != nil {
			StopTrying(fmt.Sprintf("%s got machine %s", rival.Name, *rival.Spec.SystemID)).Now()
		}
		seen := fmt.Sprintf(`{"metadata": {"annotations": {"seen": %q}}}`, rival.ResourceVersion)
		g.Expect(client.IgnoreNotFound(r.client.Patch(ctx, &rival, client.RawPatch("application/merge-patch+json", []byte(seen))))).To(Succeed())
	}
}

func (w *world) machinesOf(ctx context.Context, g Gomega, pool string) []infrav1.MaasMachine {
	list := &infrav1.MaasMachineList{}
	g.Expect(w.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: pool})).To(Succeed())
	return list.Items
}

// compete creates as many rivals as there are machines, and waits until none of them finds a machine.
func (r *rack) compete(ctx context.Context) {
	r.t.Helper()
	count := len(r.maas.Machines())
	r.change(ctx, rivals, func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To(int32(count)) })
	r.Eventually(func(g Gomega) {
		all := r.machinesOf(ctx, g, rivals)
		g.Expect(all).To(HaveLen(count))
		for _, rival := range all {
			ready := meta.FindStatusCondition(rival.Status.Conditions, clusterv1.ReadyCondition)
			g.Expect(ready).To(HaveValue(HaveField("Reason", "NoCapacity")), rival.Name)
		}
	}, patience, tick).Should(Succeed())
}

// roll changes the template of the pool and waits until all of its machines come from that template.
func (r *rack) roll(ctx context.Context, template string) {
	r.t.Helper()
	r.change(ctx, cluster, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = template })
	r.Eventually(func(g Gomega) {
		r.live(ctx, g)
		g.Expect(r.machinesOf(ctx, g, cluster)).To(And(HaveLen(len(r.maas.Machines())),
			HaveEach(HaveField("Annotations", HaveKeyWithValue(clusterv1.TemplateClonedFromNameAnnotation, template)))))
	}, patience, tick).Should(Succeed())
}

// allocations returns the UIDs of all allocations of each machine, as the event log of MAAS records them.
func (r *rack) allocations() map[string][]string {
	found := map[string][]string{}
	r.Expect(r.maas.DB.View(func() error {
		for _, event := range r.maas.DB.Events.All() {
			if event.Type == "User acquiring node" {
				made, _ := maas.AllocationOf(event.Description)
				found[event.SystemID] = append(found[event.SystemID], made.UID)
			}
		}
		return nil
	})).To(Succeed())
	return found
}

// TestFullRack checks that each manager can roll out a pool that has every machine of MAAS. A machine must be
// released before its successor can be allocated. The rivals request machines all the time.
func TestFullRack(t *testing.T) {
	managers := binaries(t)
	w := newWorld(t)
	ctx := t.Context()
	w.operator()
	machines := []simtest.Machine{{ID: "aaaaaa"}, {ID: "bbbbbb"}, {ID: "cccccc"}}
	size := int32(len(machines))
	w.hostedCluster(func(d *clusterv1.MachineDeployment) {
		d.Spec.Replicas = ptr.To(size)
		d.Spec.Rollout.Strategy.RollingUpdate = clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
			MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	})
	w.create(&corev1.Secret{ObjectMeta: w.meta(userData), Data: map[string][]byte{"value": []byte("#cloud-config\n")}})
	w.pool(rivals, func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To[int32](0) })
	site := newRack(w, machines...)
	images := []string{image, "ubuntu/noble"}
	for i, binary := range managers {
		t.Run("When the manager of "+versionOf(binary)+" rolls out a full rack, each machine should be installed again and stay in its pool", func(t *testing.T) {
			stage := site.in(t)
			stop := stage.manager(binary)
			before := stage.awaitMachines(ctx, size)
			stage.compete(ctx)
			template, installed := fmt.Sprintf("roll-%d", i+1), images[(i+1)%len(images)]
			stage.template(template, installed)
			stage.roll(ctx, template)
			for uid := range stage.awaitMachines(ctx, size) {
				stage.Expect(before).NotTo(HaveKey(uid), "a Machine was not replaced")
			}
			stage.Expect(stage.maas.Machines()).To(HaveEach(And(HaveField("Status", status.Deployed),
				WithTransform(func(m *inventory.Machine) string { return m.OSystem + "/" + m.Series }, Equal(installed)))))
			allocated := stage.allocations()
			stage.Expect(allocated).To(HaveLen(len(machines)))
			for id, uids := range allocated {
				stage.Expect(uids).To(And(HaveLen(i+2), HaveEach(uids[0])), "machine %s was somebody else's in between, or given back once more", id)
			}
			stop()
		})
	}
}
