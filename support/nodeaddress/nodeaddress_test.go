// SPDX-License-Identifier: Apache-2.0

package nodeaddress

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func node(name string, ready corev1.ConditionStatus, addresses ...corev1.NodeAddress) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}, Addresses: addresses,
		},
	}
}

func TestFindVirtual(t *testing.T) {
	set := func(annotations map[string]string, ready int32) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "hypershift-virtual-ip", Name: "api-virtual-ip", Annotations: annotations,
				Labels: map[string]string{"hypershift.openshift.io/operator-component": "api-virtual-ip"},
			},
			Status: appsv1.DaemonSetStatus{NumberReady: ready},
		}
	}
	addresses := map[string]string{"hypershift.openshift.io/api-virtual-ip": "10.0.0.5,fd00::5"}
	for _, tt := range []struct {
		name string
		set  *appsv1.DaemonSet
		want Virtual
		find string
	}{
		{"When the nodes hold virtual IPs it should be the first", set(addresses, 2), Virtual{Host: "10.0.0.5", Fit: 2}, "10.0.0.5"},
		{"When it says no address it should be as if there were none", set(nil, 2), Virtual{}, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithObjects(tt.set, node("a", "True", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "1"})).Build()
			got, err := FindVirtual(t.Context(), c)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
			g.Expect(Find(t.Context(), c)).To(Equal(tt.find))
		})
	}
}

func TestFind(t *testing.T) {
	internal := func(a string) corev1.NodeAddress { return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a} }
	external := func(a string) corev1.NodeAddress { return corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: a} }
	dns := func(a string) corev1.NodeAddress { return corev1.NodeAddress{Type: corev1.NodeExternalDNS, Address: a} }
	tests := []struct {
		name  string
		nodes []*corev1.Node
		want  string
	}{
		{"When a node has several addresses it should take the most public", []*corev1.Node{node("a", "True", internal("1"), external("2"), dns("3"))}, "3"},
		{"When there are several nodes it should take the first by name", []*corev1.Node{node("b", "True", internal("2")), node("a", "True", internal("1"))}, "1"},
		{"When a node is not ready it should take another", []*corev1.Node{node("a", "False", internal("1")), node("b", "True", internal("2"))}, "2"},
		{"When no node is ready it should say so", []*corev1.Node{node("a", "Unknown", internal("1"))}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			builder := fake.NewClientBuilder()
			for _, n := range tt.nodes {
				builder = builder.WithObjects(n)
			}
			got, err := Find(t.Context(), builder.Build())
			g.Expect(got).To(Equal(tt.want))
			if tt.want == "" {
				g.Expect(err).To(MatchError(ContainSubstring("no Ready node")))
			}
		})
	}
}
