// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestImpersonated(t *testing.T) {
	machine := func(name, host, id string) clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.MachineSpec{ProviderID: id}}
		if host != "" {
			m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: host}}
		}
		return m
	}
	machines := []clusterv1.Machine{machine("a", "worker-1", "maas:///az1/aaa"), machine("b", "", "maas:///az1/bbb"),
		machine("c", "worker-3", "")}
	for name, tc := range map[string]struct{ node, id, victim string }{
		"its own provider ID": {"worker-1", "maas:///az1/aaa", ""},
		"no provider ID":      {"worker-1", "", ""},
		"the provider ID of a Machine that provisions": {"worker-1", "maas:///az1/bbb", "b"},
		"the provider ID of a running Machine":         {"worker-3", "maas:///az1/aaa", "a"},
		"the provider ID of no Machine":                {"worker-1", "maas:///az1/zzz", ""},
		"a name without a Machine":                     {"other", "maas:///az1/aaa", ""},
	} {
		t.Run("When a node has "+name+" it should return the Machine that it impersonates, or nil", func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: tc.node}, Spec: corev1.NodeSpec{ProviderID: tc.id}}
			found := impersonated(node, machines)
			if tc.victim == "" {
				NewWithT(t).Expect(found).To(BeNil())
				return
			}
			NewWithT(t).Expect(found).To(HaveField("Name", tc.victim))
		})
	}
}
