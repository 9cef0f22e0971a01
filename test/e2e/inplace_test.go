// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// Pools that are updated in place, one configured by cloud-init and one by Ignition.
const inPlacePool, inPlaceIgnition = "inplace", "ignited"

// inPlace upgrades two machines of the previous release to its next patch and then to this build's minor. Then the
// configuration of one machine is changed. If the kubelet does not start with the new configuration, the update must be
// rolled back. The machines stay the same: MAAS receives no write requests, and the Nodes are neither replaced nor
// rebooted. A workload with a disruption budget always has pods.
func (s *suite) inPlace(t *testing.T) {
	s.createCluster(t, 1)
	s.must(t, s.RunWorkload(t.Context(), s.cluster))
	previous, err := s.PreviousReleaseImage(t.Context())
	s.must(t, err)
	others, err := s.nodes(t.Context())
	s.must(t, err)
	s.createPool(t, inPlacePool, "--image", "ubuntu/noble", "--node-upgrade-type", "InPlace", "--release-image", previous)
	s.createPool(t, inPlaceIgnition, "--image", ignitionImage, "--node-upgrade-type", "InPlace", "--release-image", previous)
	s.must(t, s.FollowMachines(t.Context(), s.c, s.cluster, inPlacePool, 1))
	patch, err := s.PatchReleaseImage(t.Context()) // Build the payload while the machines boot: they do not need it yet.
	s.must(t, err)
	release, err := s.ReleaseImage(t.Context())
	s.must(t, err)
	s.reach(t, "nodes of the pools that are updated in place ready", long, s.NodesReady(s.cluster, len(others.Items)+2))
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	before, byIgnition := s.nodeOf(t, guest, inPlacePool), s.nodeOf(t, guest, inPlaceIgnition)
	guarded := s.guard(t, guest, before.Name)
	calls := s.changes(t)

	s.upgradeInPlace(t, guarded, "patch", patch)
	version := s.upgradeInPlace(t, guarded, "minor", release)
	NewWithT(t).Expect(guarded.lowest).To(BeNumerically(">=", 1), "the budget was not kept")

	s.kubelet(t, "maxPods: 42")
	s.reach(t, "configuration changed in place", long, inPlaceNode(guest, inPlacePool, func(n *corev1.Node) bool { return n.Status.Capacity.Pods().Value() == 42 && !n.Spec.Unschedulable }))
	s.reach(t, "pool configured in place", soon, journey.PoolCondition(s.c, inPlacePool, hyperv1.NodePoolUpdatingConfigConditionType, "False", hyperv1.AsExpectedReason))

	s.kubelet(t, "maxPods: -1")
	s.reach(t, "configuration without a kubelet taken back", long, journey.PoolCondition(s.c, inPlacePool, hyperv1.NodePoolUpdatingConfigConditionType, "False", hyperv1.NodePoolInplaceUpgradeFailedReason))
	s.reach(t, "node serves as before", soon, inPlaceNode(guest, inPlacePool, func(n *corev1.Node) bool { return n.Status.Capacity.Pods().Value() == 42 && !n.Spec.Unschedulable }))

	g := NewWithT(t)
	after := s.nodeOf(t, guest, inPlacePool)
	g.Expect(identity(after)).To(Equal(identity(before)))
	g.Expect(identity(s.nodeOf(t, guest, inPlaceIgnition))).To(Equal(identity(byIgnition)))
	g.Expect(after.Annotations).To(HaveKeyWithValue(hyperv1.NodeConfigStateAnnotation, hyperv1.NodeConfigRolledBack))
	g.Expect(after.Annotations).To(HaveKeyWithValue(hyperv1.NodeConfigMessageAnnotation, ContainSubstring("the kubelet v"+version+" ended")))
	g.Expect(s.changes(t)).To(Equal(calls), "MAAS was asked to change machines")
	for _, obj := range guarded.objects {
		g.Expect(guest.Delete(t.Context(), obj)).To(Succeed())
	}
	s.destroyPool(t, inPlacePool)
	s.destroyPool(t, inPlaceIgnition)
	s.reach(t, "nodes of the pools gone", soon, s.NodesReady(s.cluster, len(others.Items)))
	s.destroy(t)
}

// upgradeInPlace upgrades both pools to a release, waits until their Nodes and status confirm it, and returns its
// version.
func (s *suite) upgradeInPlace(t *testing.T, guarded *guarded, step, release string) string {
	t.Helper()
	_, version, _ := strings.Cut(release, "release:")
	pools := []string{inPlacePool, inPlaceIgnition}
	for _, pool := range pools {
		s.patchPool(t, pool, fmt.Sprintf(`{"spec":{"release":{"image":%q}}}`, release))
	}
	for _, pool := range pools {
		s.reach(t, fmt.Sprintf("%s upgrade in place of pool %s", step, pool), long, guarded.while(journey.All(
			inPlaceNode(guarded.guest, pool, func(n *corev1.Node) bool {
				return n.Status.NodeInfo.KubeletVersion == "v"+version && !n.Spec.Unschedulable
			}),
			journey.PoolVersion(s.c, pool, version),
			journey.PoolCondition(s.c, pool, hyperv1.NodePoolUpdatingVersionConditionType, "False", hyperv1.AsExpectedReason))))
	}
	return version
}

// identity returns the UID and the boot ID of a Node.
func identity(node *corev1.Node) string { return string(node.UID) + " " + node.Status.NodeInfo.BootID }

// nodeOf returns a pool's only Node. The cluster's operator sets the label that identifies it, possibly after the Node
// is Ready.
func (s *suite) nodeOf(t *testing.T, guest client.Client, pool string) (node *corev1.Node) {
	t.Helper()
	s.reach(t, "node of pool "+pool, soon, func(ctx context.Context) (found bool, _ string, err error) {
		node, err = findNode(ctx, guest, pool)
		return err == nil, "", err
	})
	return node
}

func findNode(ctx context.Context, guest client.Client, pool string) (*corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := guest.List(ctx, nodes, client.MatchingLabels{hyperv1.NodePoolLabel: pool}); err != nil {
		return nil, err
	}
	if len(nodes.Items) != 1 {
		return nil, fmt.Errorf("pool %s has %d nodes", pool, len(nodes.Items))
	}
	return &nodes.Items[0], nil
}

// inPlaceNode checks that a pool's Node is Ready, and that the function is returns true for it.
func inPlaceNode(guest client.Client, pool string, is func(*corev1.Node) bool) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		node, err := findNode(ctx, guest, pool)
		if err != nil {
			return false, "", err
		}
		ready := false
		for _, c := range node.Status.Conditions {
			ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		return ready && is(node), fmt.Sprintf("%s ready=%t cordoned=%t %s %s", node.Status.NodeInfo.KubeletVersion, ready, node.Spec.Unschedulable,
			node.Annotations[hyperv1.NodeConfigStateAnnotation], node.Annotations[hyperv1.NodeConfigMessageAnnotation]), nil
	}
}

func (s *suite) patchPool(t *testing.T, pool, patch string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "patch", "nodepool", pool, "-n", journey.Namespace, "--type=merge", "-p", patch))
}

// kubelet sets a KubeletConfig with one line for the pool.
func (s *suite) kubelet(t *testing.T, line string) {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, GenerateName: "kubelet-"}, Data: map[string]string{
		"config": "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: limits}\nspec: {kubeletConfig: {" + line + "}}\n",
	}}
	s.must(t, s.c.Create(t.Context(), config))
	// Destroying the cluster does not delete its user's objects.
	t.Cleanup(func() { _ = s.c.Delete(context.Background(), config) })
	s.patchPool(t, inPlacePool, fmt.Sprintf(`{"spec":{"config":[{"name":%q}]}}`, config.Name))
}

// guarded is a workload with a disruption budget.
type guarded struct {
	guest   client.Client
	objects []client.Object
	// lowest is the lowest observed number of available pods.
	lowest int32
}

// guard starts two pods on the pool's node; the disruption budget requires one of them to be available.
func (s *suite) guard(t *testing.T, guest client.Client, node string) *guarded {
	t.Helper()
	nodes, err := s.nodes(t.Context())
	s.must(t, err)
	cordon := func(verb string) {
		for _, other := range nodes.Items {
			if other.Name != node {
				s.must(t, s.Type(t.Context(), s.Guest(s.cluster, verb, other.Name)...))
			}
		}
	}
	web := &appsv1.Deployment{}
	s.must(t, guest.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, web))
	labels := map[string]string{"app": "guarded"}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "guarded"}
	pods := *web.Spec.Template.DeepCopy()
	pods.Labels = labels
	one := intstr.FromInt32(1)
	g := &guarded{guest: guest, lowest: 2, objects: []client.Object{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: web.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pods}},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}}},
	}}
	cordon("cordon")
	defer cordon("uncordon")
	for _, obj := range g.objects {
		s.must(t, guest.Create(t.Context(), obj))
	}
	s.reach(t, "workload with a budget on the node", soon, journey.DeploymentAvailable(guest, "default", "guarded", 2))
	return g
}

// while returns check, but also records the available pods of the workload at each call.
func (g *guarded) while(check journey.Check) journey.Check {
	return func(ctx context.Context) (bool, string, error) {
		d := &appsv1.Deployment{}
		if err := g.guest.Get(ctx, client.ObjectKey{Namespace: "default", Name: "guarded"}, d); err != nil {
			return false, "", err
		}
		g.lowest = min(g.lowest, d.Status.AvailableReplicas)
		return check(ctx)
	}
}

// changes counts the requests of the scenario's user that change machines.
func (s *suite) changes(t *testing.T) map[string]int {
	t.Helper()
	counts, err := journey.MAASChanges(t.Context(), s.user)
	s.must(t, err)
	return counts
}
