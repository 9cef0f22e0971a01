// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"strconv"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// Annotations on a Node through which the payload's machine-config-daemon, drainer, and upgrader communicate.
const (
	currentConfig    = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig    = "machineconfiguration.openshift.io/desiredConfig"
	daemonState      = "machineconfiguration.openshift.io/state"
	daemonReason     = "machineconfiguration.openshift.io/reason"
	desiredDrain     = "machineconfiguration.openshift.io/desiredDrain"
	lastAppliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
)

// guest simulates the components that update nodes in place. These are Cluster API's MachineSet, a daemon on each node,
// and in the hosted cluster the upgrader and drainer of the payload's config operator. It implements their contract
// (openshift/hypershift hosted-cluster-config-operator, inplaceupgrader and drainer).
type guest struct {
	*world
	// broken maps a node to the reason why its daemon cannot update it.
	broken map[string]string
	// busiest is the maximum number of nodes that were updated at once.
	busiest int
}

func newGuest(s *world) *guest { return &guest{world: s, broken: map[string]string{}} }

func (g *guest) set() *clusterv1.MachineSet {
	g.t.Helper()
	return look(g.world, &clusterv1.MachineSet{}, fixture.PoolName)
}

func (g *guest) machines() []clusterv1.Machine {
	g.t.Helper()
	list := &clusterv1.MachineList{}
	g.Expect(g.client.List(g.t.Context(), list, client.InNamespace(g.hosted()))).To(Succeed())
	return list.Items
}

// scale creates the machines that the set lacks, without their nodes.
func (g *guest) scale() {
	g.t.Helper()
	ms := g.set()
	for i := len(g.machines()); i < int(*ms.Spec.Replicas); i++ {
		name := fmt.Sprintf("%s-%d", g.namespace, i)
		template := look(g.world, &infrav1.MaasMachineTemplate{}, ms.Spec.Template.Spec.InfrastructureRef.Name)
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.hosted(), Name: name, Labels: ms.Spec.Template.Labels, Annotations: ms.Spec.Template.Annotations},
			Spec:       *ms.Spec.Template.Spec.DeepCopy(),
		}
		machine.Spec.InfrastructureRef.Kind, machine.Spec.InfrastructureRef.Name = "MaasMachine", name
		g.Expect(controllerutil.SetControllerReference(ms, machine, g.client.Scheme())).To(Succeed())
		fixture.Create(g.t, g.client, machine, &infrav1.MaasMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.hosted(), Name: name, Annotations: map[string]string{
				clusterv1.TemplateClonedFromNameAnnotation: template.Name, hyperv1.NodePoolAnnotation: g.key().String()}},
			Spec: template.Spec.Template.Spec,
		})
	}
}

// join creates the nodes of machines.
func (g *guest) join() {
	g.t.Helper()
	for _, machine := range g.machines() {
		if !machine.Status.NodeRef.IsDefined() {
			fixture.Create(g.t, g.client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name}})
			g.serve(&machine)
		}
	}
}

// nodes returns the nodes of the set's machines.
func (g *guest) nodes() []*corev1.Node {
	g.t.Helper()
	ms, all := g.set(), []*corev1.Node{}
	for _, machine := range g.machines() {
		if metav1.IsControlledBy(&machine, ms) && machine.Status.NodeRef.IsDefined() {
			node := &corev1.Node{}
			g.Expect(g.client.Get(g.t.Context(), client.ObjectKey{Name: machine.Status.NodeRef.Name}, node)).To(Succeed())
			all = append(all, node)
		}
	}
	return all
}

func (g *guest) write(obj client.Object, annotations map[string]string) {
	g.t.Helper()
	for key, value := range annotations {
		scope.Annotate(obj, key, value)
	}
	g.Expect(g.client.Update(g.t.Context(), obj)).To(Succeed())
}

// upgrade performs one step of the upgrader.
func (g *guest) upgrade() {
	g.t.Helper()
	ms := g.set()
	target, current := ms.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation], ms.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
	if target == "" || target == current || len(g.secret("token-" + ms.Name + "-" + target).Data["payload"]) == 0 {
		return
	}
	nodes, old := g.nodes(), 0
	for _, node := range nodes {
		if !isAt(node, target) {
			old++
		}
	}
	delete(ms.Annotations, hyperv1.NodePoolUpgradeInProgressTrueAnnotation)
	delete(ms.Annotations, hyperv1.NodePoolUpgradeInProgressFalseAnnotation)
	if old == 0 {
		g.write(ms, map[string]string{hyperv1.NodePoolCurrentConfigVersionAnnotation: target})
		return
	}
	for _, node := range nodes {
		if node.Annotations[daemonState] == "Degraded" {
			g.write(ms, map[string]string{hyperv1.NodePoolUpgradeInProgressFalseAnnotation: fmt.Sprintf("Node %s in nodepool degraded: %s", node.Name, node.Annotations[daemonReason])})
			return
		}
	}
	g.write(ms, map[string]string{hyperv1.NodePoolUpgradeInProgressTrueAnnotation: fmt.Sprintf("Total Nodes: %d. Upgraded: %d", len(nodes), len(nodes)-old)})
	g.choose(nodes, target, ms.Annotations[hyperv1.NodePoolMaxUnavailableAnnotation])
}

// isAt reports whether a node has a configuration and is ready with it. A node that was never updated has no
// annotation, and is updated as a precaution.
func isAt(node *corev1.Node, config string) bool {
	a := node.Annotations
	return a[currentConfig] == config && a[daemonState] == "Done" && a[desiredDrain] == a[lastAppliedDrain]
}

// choose sets a new target on nodes, even on those that are being updated to a different target.
func (g *guest) choose(nodes []*corev1.Node, target, limit string) {
	g.t.Helper()
	room, err := strconv.Atoi(limit)
	g.Expect(err).NotTo(HaveOccurred(), "the upgrader reads a plain number")
	g.Expect(room).To(BeNumerically("<=", len(nodes)), "the upgrader would trip")
	for _, node := range nodes {
		if node.Annotations[currentConfig] != node.Annotations[desiredConfig] {
			room--
			g.write(node, map[string]string{desiredConfig: target})
		}
	}
	for _, node := range nodes {
		if room > 0 && node.Annotations[desiredConfig] != target {
			room--
			g.write(node, map[string]string{desiredConfig: target})
		}
	}
}

// daemons performs one step of the drainer and of the daemon on each node.
func (g *guest) daemons() {
	g.t.Helper()
	busy := 0
	for _, node := range g.nodes() {
		a := node.Annotations
		if a[currentConfig] != a[desiredConfig] {
			busy++
		}
		drain := "drain-" + a[desiredConfig]
		switch {
		case a[desiredDrain] != a[lastAppliedDrain]:
			node.Spec.Unschedulable = a[desiredDrain] == drain
			g.write(node, map[string]string{lastAppliedDrain: a[desiredDrain]})
		case a[currentConfig] == a[desiredConfig]:
		case g.broken[node.Name] != "":
			g.write(node, map[string]string{daemonState: "Degraded", daemonReason: g.broken[node.Name]})
		case a[desiredDrain] != drain:
			g.write(node, map[string]string{desiredDrain: drain, daemonState: "Working"})
		default:
			g.Expect(node.Spec.Unschedulable).To(BeTrue(), "a node is drained before it is updated")
			g.write(node, map[string]string{currentConfig: a[desiredConfig], daemonState: "Done", desiredDrain: "uncordon-" + a[desiredConfig]})
		}
	}
	g.busiest = max(g.busiest, busy)
}

// step performs one step of all components.
func (g *guest) step() {
	g.t.Helper()
	_, err := g.pass()
	g.Expect(err).NotTo(HaveOccurred())
	g.answer()
	g.upgrade()
	g.daemons()
}

// updated returns how many nodes have been updated to the set's target.
func (g *guest) updated() int {
	g.t.Helper()
	target, count := g.set().Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation], 0
	for _, node := range g.nodes() {
		if isAt(node, target) {
			count++
		}
	}
	return count
}

// until repeats steps until the predicate holds. No update needs more than a few steps for each node.
func (g *guest) until(what string, holds func() bool) {
	g.t.Helper()
	for range 40 {
		if g.step(); holds() {
			return
		}
	}
	ms := g.set()
	g.t.Fatalf("%s never came: MachineSet %v, conditions %v", what, ms.Annotations, g.pool().Status.Conditions)
}

// idle reports whether the pool reports no update.
func (g *guest) idle() bool {
	g.t.Helper()
	return g.condition("UpdatingVersion").Status == corev1.ConditionFalse && g.condition("UpdatingVersion").Reason == hyperv1.AsExpectedReason &&
		g.condition("UpdatingConfig").Status == corev1.ConditionFalse && g.condition("UpdatingConfig").Reason == hyperv1.AsExpectedReason
}

// behind returns a description of each machine and its MaasMachine, which changes when one of them is changed or
// replaced.
func (g *guest) behind() map[string]string {
	g.t.Helper()
	list, all := &infrav1.MaasMachineList{}, map[string]string{}
	g.Expect(g.client.List(g.t.Context(), list, client.InNamespace(g.hosted()))).To(Succeed())
	for _, machine := range list.Items {
		all[machine.Name] = fmt.Sprintf("MaasMachine %s as of %s", machine.UID, machine.ResourceVersion)
	}
	for _, machine := range g.machines() {
		all[machine.Name] += fmt.Sprintf(", Machine %s with spec %d, deleted %v", machine.UID, machine.Generation, machine.DeletionTimestamp)
	}
	return all
}
