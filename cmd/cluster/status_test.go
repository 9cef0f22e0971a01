// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func condition(t, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

func pool(name string, want, have int32, conditions ...hyperv1.NodePoolCondition) hyperv1.NodePool {
	p := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Replicas = ptr.To(want)
	p.Status.Replicas = have
	p.Status.Conditions = conditions
	return p
}

func TestState(t *testing.T) {
	available := []metav1.Condition{condition("Available", "True", "AsExpected", "")}
	tests := []struct {
		name       string
		conditions []metav1.Condition
		pools      []hyperv1.NodePool
		done       bool
		message    string
		blocking   string
	}{
		{
			name: "When no condition is reported, it should wait for the operator", message: "waiting for the operator", blocking: "waiting for the operator",
		},
		{
			name: "When several conditions are False, it should name the first cause, not the last effect",
			conditions: []metav1.Condition{
				condition("Available", "False", "Waiting", "not yet"),
				condition("PlatformCredentialsFound", "False", "PlatformCredentialsNotFound", "MAAS refuses the API key"),
				condition("ValidConfiguration", "True", "AsExpected", ""),
			},
			message:  "PlatformCredentialsFound is False (PlatformCredentialsNotFound): MAAS refuses the API key",
			blocking: "HostedCluster: PlatformCredentialsFound is False",
		},
		{
			name: "When nodes are missing, it should count them and report the NodePool's condition", conditions: available,
			pools: []hyperv1.NodePool{pool("a", 2, 2), pool("b", 2, 1, hyperv1.NodePoolCondition{
				Type: "AllMachinesReady", Status: "False", Reason: "NoMachineAvailable", Message: "no machine has 64 cores",
			})},
			message: "nodes: a 2/2, b 1/2; NodePool b: AllMachinesReady is False (NoMachineAvailable): no machine has 64 cores", blocking: "NodePool b: ",
		},
		{
			name: "When all nodes are ready, it should be done", conditions: available, pools: []hyperv1.NodePool{pool("a", 2, 2)},
			done: true, message: "control plane available, nodes: a 2/2",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{}
			hc.Status.Conditions = tt.conditions
			state := stateOf(hc, tt.pools)
			g.Expect(state.Done).To(Equal(tt.done))
			g.Expect(state.Message).To(ContainSubstring(tt.message))
			g.Expect(state.Blocking).To(ContainSubstring(tt.blocking))
		})
	}
}
