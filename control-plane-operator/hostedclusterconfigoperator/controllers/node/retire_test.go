// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

// joined returns a machine's node whose Ready condition has had its status for some time.
func joined(name, machineName string, ready corev1.ConditionStatus, since time.Duration) *corev1.Node {
	node := newNode()
	node.Name = name
	node.Spec.ProviderID = "maas:///az1/" + name
	node.Annotations = map[string]string{"hypershift.openshift.io/labelsSynced": "true", "hypershift.openshift.io/machine": machineName}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.Time{Time: now.Add(-since)}}}
	return node
}

// sibling returns a Machine of another node.
func sibling() *clusterv1.Machine {
	m := machine()
	m.Name, m.Status.NodeRef.Name = "pool-b", "worker-2"
	return m
}

// successor returns a Machine with the host name of worker-1 and the given hardware.
func successor(systemID string) *clusterv1.Machine {
	m := machine()
	m.Status.NodeRef.Name = ""
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: "Worker-1"}}
	m.Spec.ProviderID = "maas:///az1/" + systemID
	return m
}

// leaving returns the node after that Machine was seen being deleted.
func leaving(node *corev1.Node, machine string) *corev1.Node {
	node.Annotations[leavingAnnotation] = machine
	return node
}

// deleted returns the Machine with a deletion timestamp and a finalizer.
func deleted(m *clusterv1.Machine) *clusterv1.Machine {
	m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: now}, []string{clusterv1.MachineFinalizer}
	return m
}

// renamed returns the Machine with a different host name.
func renamed(m *clusterv1.Machine) *clusterv1.Machine {
	m.Status.Addresses[0].Address = "worker-9"
	return m
}

func TestNodeOfAMachineThatIsGone(t *testing.T) {
	restored := machine()
	restored.Status = clusterv1.MachineStatus{}
	never := newNode()
	for _, tc := range []struct {
		name     string
		node     *corev1.Node
		machines []client.Object
		gone     bool
	}{
		{"When a Ready node has no Machine, it should stay",
			joined("worker-1", "pool-a", corev1.ConditionTrue, time.Hour), []client.Object{sibling()}, false},
		{"When the node has been not Ready for a minute, it should stay",
			joined("worker-1", "pool-a", corev1.ConditionUnknown, time.Minute), []client.Object{sibling()}, false},
		{"When the node has been not Ready for an hour, it should be deleted",
			joined("worker-1", "pool-a", corev1.ConditionUnknown, time.Hour), []client.Object{sibling()}, true},
		{"When no Machine exists at all, as after a restore, the node should stay even if it is not Ready",
			joined("worker-1", "pool-a", corev1.ConditionUnknown, time.Hour), nil, false},
		{"When the Machine was restored without its status, the node should stay",
			joined("worker-1", "pool-a", corev1.ConditionUnknown, time.Hour), []client.Object{restored}, false},
		{"When another Machine has the hardware and the node is not Ready, it should be deleted at once",
			joined("worker-1", "pool-old", corev1.ConditionUnknown, time.Second), []client.Object{successor("worker-1")}, true},
		{"When another Machine only has the same host name, the node should stay",
			joined("worker-1", "pool-old", corev1.ConditionUnknown, time.Second), []client.Object{successor("other")}, false},
		{"When another Machine has the hardware and the node is Ready, it should stay",
			joined("worker-1", "pool-old", corev1.ConditionTrue, time.Hour), []client.Object{successor("worker-1")}, false},
		{"When its Machine was deleted, the node should be deleted at once, Ready or not",
			leaving(joined("worker-1", "pool-a", corev1.ConditionTrue, time.Hour), "pool-a"), []client.Object{sibling()}, true},
		{"When the last Machine was deleted, the node should be deleted at once",
			leaving(joined("worker-1", "pool-a", corev1.ConditionTrue, time.Hour), "pool-a"), nil, true},
		{"When its Machine is being deleted, the node should stay until the Machine is gone",
			joined("worker-1", "pool-a", corev1.ConditionTrue, time.Hour), []client.Object{deleted(machine())}, false},
		{"When another Machine has joined under the name of a deleted one, the node should stay",
			leaving(joined("worker-1", "pool-old", corev1.ConditionTrue, time.Hour), "pool-old"), []client.Object{successor("other")}, false},
		{"When another Machine runs on the hardware of a deleted one, the node should stay while it is Ready",
			leaving(joined("worker-1", "pool-old", corev1.ConditionTrue, time.Hour), "pool-old"), []client.Object{renamed(successor("worker-1"))}, false},
		{"When only an earlier Machine of the node was deleted, the node should stay",
			leaving(joined("worker-1", "pool-a", corev1.ConditionTrue, time.Hour), "pool-old"), []client.Object{sibling()}, false},
		{"When the node never had a Machine, it should stay", never, []client.Object{sibling()}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			node, err := pass(t, tc.node, tc.machines...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(node == nil).To(Equal(tc.gone))
		})
	}
	t.Run("When Cluster API has not set the node reference, it should find the Machine by host name", func(t *testing.T) {
		g := NewWithT(t)
		node, err := pass(t, newNode(), successor("worker-1"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/machine", "pool-a"))
	})
	t.Run("When a Machine is being deleted, its Node should be annotated first and deleted after the Machine", func(t *testing.T) {
		g := NewWithT(t)
		gone := deleted(machine())
		r := newReconciler(fixture.ControlPlane(), []client.Object{joined("worker-1", "pool-a", corev1.ConditionTrue, time.Hour)}, []client.Object{gone})
		g.Expect(left(t, r)).To(Equal(1))
		node := &corev1.Node{}
		g.Expect(r.Guest.Get(t.Context(), client.ObjectKey{Name: "worker-1"}, node)).To(Succeed())
		g.Expect(node.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/machine-leaving", "pool-a"))
		r.Management = newReconciler(fixture.ControlPlane(), nil, nil).Management
		r.Live = r.Management
		g.Expect(left(t, r)).To(Equal(0))
	})
	t.Run("When two Machines have one name, it should use the one whose node reference names the node", func(t *testing.T) {
		g := NewWithT(t)
		old := machine()
		old.Name, old.Status = "pool-old", clusterv1.MachineStatus{}
		node, err := pass(t, joined("worker-1", "pool-old", corev1.ConditionUnknown, time.Hour), old, machine())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/machine", "pool-a"))
		g.Expect(node.Labels).NotTo(HaveKey("disk"), "labels are given once")
	})
}

// fleet returns a reconciler for nodes whose Machines are gone. Only the given Machines exist.
func fleet(size int, ready corev1.ConditionStatus, machines ...client.Object) (*Reconciler, *clocktesting.FakePassiveClock) {
	var nodes []client.Object
	for i := range size {
		nodes = append(nodes, joined(fmt.Sprintf("node-%d", i), fmt.Sprintf("gone-%d", i), ready, time.Hour))
	}
	r := newReconciler(fixture.ControlPlane(), nodes, machines)
	clock := clocktesting.NewFakePassiveClock(now)
	r.Clock, r.Pause.Clock, r.Deletions = clock, clock, NewDeletions(clock)
	return r, clock
}

// left reconciles all nodes and returns the number of remaining ones.
func left(t *testing.T, r *Reconciler) int {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := r.Guest.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Guest.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	return len(nodes.Items)
}

func TestFleet(t *testing.T) {
	t.Run("When a restored management cluster has no Machine yet, it should delete no Node", func(t *testing.T) {
		r, clock := fleet(5, corev1.ConditionTrue)
		g := NewWithT(t)
		g.Expect(left(t, r)).To(Equal(5))
		clock.SetTime(now.Add(24 * time.Hour))
		g.Expect(left(t, r)).To(Equal(5))
	})
	t.Run("When many Machines vanish at once, it should delete one of their Nodes per minute", func(t *testing.T) {
		r, clock := fleet(5, corev1.ConditionUnknown, sibling())
		g := NewWithT(t)
		g.Expect(left(t, r)).To(Equal(4))
		g.Expect(left(t, r)).To(Equal(4))
		clock.SetTime(now.Add(time.Minute))
		g.Expect(left(t, r)).To(Equal(3))
	})
	t.Run("When the cluster is paused, it should neither delete nor label any Node", func(t *testing.T) {
		r, _ := fleet(5, corev1.ConditionUnknown, sibling(), machine())
		g := NewWithT(t)
		g.Expect(r.Guest.Create(t.Context(), newNode())).To(Succeed())
		paused := fixture.ControlPlane()
		paused.Spec.PausedUntil = ptr.To("true")
		again := newReconciler(paused, nil, nil)
		r.Pause.Management = again.Management
		g.Expect(left(t, r)).To(Equal(6))
		node := &corev1.Node{}
		g.Expect(r.Guest.Get(t.Context(), client.ObjectKey{Name: "worker-1"}, node)).To(Succeed())
		g.Expect(node.Labels).NotTo(HaveKey("disk"))
	})
}
