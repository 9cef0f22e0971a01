// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

// TestRestoredNode covers nodes that were restored with a snapshot of etcd, while the Machines of the lost management
// cluster were not.
func TestRestoredNode(t *testing.T) {
	waiting := sibling()
	waiting.Status.NodeRef = clusterv1.MachineNodeReference{}
	for _, tc := range []struct {
		name     string
		node     *corev1.Node
		age      time.Duration
		machines []client.Object
		machine  string
		gone     bool
	}{
		{name: "When another Machine has the hardware of a node that is not Ready, the node should stay for that Machine",
			node: joined("worker-1", "pool-lost", corev1.ConditionUnknown, time.Hour), age: 24 * time.Hour, machines: []client.Object{renamed(successor("worker-1"))}, machine: "pool-a"},
		{name: "When the node's Machine was being deleted in the snapshot and has a successor, the node should stay",
			node: leaving(joined("worker-1", "pool-lost", corev1.ConditionTrue, time.Hour), "pool-lost"), age: 24 * time.Hour, machines: []client.Object{successor("worker-1")}, machine: "pool-a"},
		{name: "When other pools are restored first, the node should stay while its own Machine may still come",
			node: joined("worker-1", "pool-lost", corev1.ConditionUnknown, time.Hour), age: 50 * time.Minute, machines: []client.Object{sibling()}, machine: "pool-lost"},
		{name: "When a Machine still waits for its node, the node should stay",
			node: joined("worker-1", "pool-lost", corev1.ConditionUnknown, time.Hour), age: 24 * time.Hour, machines: []client.Object{waiting}, machine: "pool-lost"},
		{name: "When all Machines have nodes and the node stays not Ready without one, it should be deleted",
			node: joined("worker-1", "pool-lost", corev1.ConditionUnknown, time.Hour), age: 24 * time.Hour, machines: []client.Object{sibling()}, gone: true},
		{name: "When all Machines have nodes and the node is Ready, it should stay",
			node: joined("worker-1", "pool-lost", corev1.ConditionTrue, time.Hour), age: 24 * time.Hour, machines: []client.Object{sibling()}, machine: "pool-lost"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := fixture.ControlPlane()
			hcp.CreationTimestamp = metav1.Time{Time: now.Add(-tc.age)}
			tc.node.CreationTimestamp = metav1.Time{Time: now.Add(-48 * time.Hour)}
			r := newReconciler(hcp, []client.Object{tc.node}, tc.machines)
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.node)})
			g.Expect(err).NotTo(HaveOccurred())
			node := &corev1.Node{}
			err = r.Guest.Get(t.Context(), client.ObjectKeyFromObject(tc.node), node)
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			g.Expect(err != nil).To(Equal(tc.gone))
			g.Expect(node.Annotations["hypershift.openshift.io/machine"]).To(Equal(tc.machine))
		})
	}
}
