// SPDX-License-Identifier: Apache-2.0

package nodeaddress

import (
	"context"
	"errors"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
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
		{"When the DaemonSet has virtual IPs, it should return the first one", set(addresses, 2), Virtual{Host: "10.0.0.5", Fit: 2}, "10.0.0.5"},
		{"When the DaemonSet has no address, it should ignore it", set(nil, 2), Virtual{}, "1"},
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
		{"When a node has several addresses, it should use the most public one", []*corev1.Node{node("a", "True", internal("1"), external("2"), dns("3"))}, "3"},
		{"When there are several nodes, it should use the first by name", []*corev1.Node{node("b", "True", internal("2")), node("a", "True", internal("1"))}, "1"},
		{"When a node is not Ready, it should use another one", []*corev1.Node{node("a", "False", internal("1")), node("b", "True", internal("2"))}, "2"},
		{"When the most public address of a node is empty, it should use the next one", []*corev1.Node{node("a", "True", dns(""), external(""), internal("1"))}, "1"},
		{"When a Ready node has no address, it should use another node", []*corev1.Node{node("a", "True", corev1.NodeAddress{Type: corev1.NodeHostName, Address: "a"}), node("b", "True", internal("2"))}, "2"},
		{"When there are no nodes, it should return an error", nil, ""},
		{"When no node is Ready, it should return an error", []*corev1.Node{node("a", "Unknown", internal("1"))}, ""},
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

func TestAll(t *testing.T) {
	g := NewWithT(t)
	address := func(a string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a}
	}
	noCondition := node("d", "True", address("4"))
	noCondition.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}}
	c := fake.NewClientBuilder().WithObjects(node("c", "True", address("3")), node("b", "False", address("2")), node("a", "True", address("1")), noCondition).Build()
	g.Expect(All(t.Context(), c)).To(Equal([]Address{{Node: "a", Host: "1"}, {Node: "c", Host: "3"}}), "a pressure is no readiness")
}

// TestSilentAPIServer checks that a failed lookup yields an error. Nodes and clients would keep using an empty or wrong
// address indefinitely.
func TestSilentAPIServer(t *testing.T) {
	silent := errors.New("no route to host")
	for name, kind := range map[string]client.ObjectList{"nodes": &corev1.NodeList{}, "virtual IPs": &appsv1.DaemonSetList{}} {
		t.Run("When the API server fails to list "+name+", it should return an error and no address", func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewClientBuilder().WithObjects(node("a", "True", corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "1"})).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if reflect.TypeOf(list) == reflect.TypeOf(kind) {
						return silent
					}
					return c.List(ctx, list, opts...)
				}}).Build()
			host, err := Find(t.Context(), c)
			g.Expect(err).To(MatchError(silent))
			g.Expect(host).To(BeEmpty())
		})
	}
}

func TestForeignDaemonSets(t *testing.T) {
	g := NewWithT(t)
	foreign := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "x", Annotations: map[string]string{hyperv1.APIVirtualIPAnnotation: "10.0.0.9"}}}
	c := fake.NewClientBuilder().WithObjects(foreign).Build()
	g.Expect(FindVirtual(t.Context(), c)).To(Equal(Virtual{}), "an annotation on somebody's object gives no address")
}
