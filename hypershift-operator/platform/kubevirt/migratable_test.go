// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/api/util/contract"
)

func TestLiveMigratable(t *testing.T) {
	machine := func(name string, status metav1.ConditionStatus) client.Object {
		return &kubevirtv1.KubevirtMachine{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: kubevirtv1.KubevirtMachineStatus{
			Conditions: []contract.Condition{{Type: "VMLiveMigratable", Status: status, Reason: "DisksNotLiveMigratable", Message: "PVC is not shared"}}}}
	}
	pool := func(name string, conditions ...metav1.Condition) *hyperv1.NodePool {
		pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Spec: hyperv1.NodePoolSpec{ClusterName: "demo"}}
		for _, c := range conditions {
			pool.Status.Conditions = append(pool.Status.Conditions, hyperv1.NodePoolCondition{Type: c.Type, Status: corev1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
		}
		return pool
	}
	for _, tc := range []struct {
		name     string
		machines []client.Object
		status   metav1.ConditionStatus
		reason   string
	}{
		{"When all machines are migratable, it should set the pool's and the cluster's condition to true", []client.Object{machine("a", "True"), machine("b", "True")}, metav1.ConditionTrue, ""},
		{"When one machine is not migratable, it should name it in the pool's and the cluster's condition", []client.Object{machine("a", "True"), machine("b", "False")}, metav1.ConditionFalse, "DisksNotLiveMigratable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			said := (&Platform{}).MachineConditions(tc.machines)
			g.Expect(said).To(HaveLen(1))
			g.Expect(said[0].Status).To(Equal(tc.status))
			connection, err := migratable(t.Context(), testClient(t, pool("one", said...), pool("new")), testCluster(nil).HostedCluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(connection.Conditions).To(HaveLen(1))
			g.Expect(connection.Conditions[0]).To(And(HaveField("Type", "KubeVirtNodesLiveMigratable"), HaveField("Status", tc.status)))
			if tc.reason != "" {
				g.Expect(said[0].Reason).To(Equal(tc.reason))
				g.Expect(connection.Conditions[0].Reason).To(Equal("KubeVirtNodesNotLiveMigratable"))
				g.Expect(connection.Conditions[0].Message).To(And(ContainSubstring("NodePool one"), ContainSubstring("Machine b")))
			}
		})
	}
	t.Run("When no pool has the condition, it should remove the cluster's condition", func(t *testing.T) {
		g := NewWithT(t)
		connection, err := migratable(t.Context(), testClient(t, pool("new")), testCluster(nil).HostedCluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(connection.Conditions).To(BeEmpty())
		g.Expect(connection.Gone).To(ConsistOf(hyperv1.KubeVirtNodesLiveMigratable))
	})
}
