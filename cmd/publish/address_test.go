// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func node(name, address string) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
	}}
}

// virtualIP returns the DaemonSet that announces 10.0.0.5, with this number of suitable nodes.
func virtualIP(fit int32) client.Object {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "hypershift-virtual-ip", Name: "api-virtual-ip", Annotations: map[string]string{"hypershift.openshift.io/api-virtual-ip": "10.0.0.5"},
			Labels: map[string]string{"hypershift.openshift.io/operator-component": "api-virtual-ip"},
		},
		Status: appsv1.DaemonSetStatus{NumberReady: fit},
	}
}

func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		name             string
		args             []string
		nodes            []client.Object
		want, warns, err string
	}{
		{name: "When there is one node, it should use its address without a warning", nodes: []client.Object{node("a", "10.0.0.1")}, want: "10.0.0.1"},
		{
			name:  "When there are several nodes, it should use the first one's address and warn with node and flag",
			nodes: []client.Object{node("b", "10.0.0.2"), node("a", "10.0.0.1")}, want: "10.0.0.1", warns: "one node, 10.0.0.1 (a)",
		},
		{
			name: "When an address is set, it should use the address without a warning", args: []string{"--external-api-server-address", "api.example.com"},
			nodes: []client.Object{node("b", "10.0.0.2"), node("a", "10.0.0.1")}, want: "api.example.com",
		},
		{
			name: "When the set address belongs to one of several nodes, it should warn with the node", args: []string{"--external-api-server-address", "10.0.0.2"},
			nodes: []client.Object{node("b", "10.0.0.2"), node("a", "10.0.0.1")}, want: "10.0.0.2", warns: "one node, 10.0.0.2 (b)",
		},
		{
			name: "When the set address belongs to the only node, it should use it without a warning", args: []string{"--external-api-server-address", "10.0.0.1"},
			nodes: []client.Object{node("a", "10.0.0.1")}, want: "10.0.0.1",
		},
		{
			name: "When the set address belongs to no node, it should use it without a warning", args: []string{"--external-api-server-address", "10.0.0.9"},
			nodes: []client.Object{node("b", "10.0.0.2"), node("a", "10.0.0.1")}, want: "10.0.0.9",
		},
		{
			name:  "When the nodes hold a virtual IP, it should use the virtual IP without a warning",
			nodes: []client.Object{virtualIP(3), node("b", "10.0.0.2"), node("a", "10.0.0.1")}, want: "10.0.0.5",
		},
		{
			name:  "When no node can hold the virtual IP, it should use the virtual IP with a warning",
			nodes: []client.Object{virtualIP(0), node("b", "10.0.0.2"), node("a", "10.0.0.1")}, want: "10.0.0.5", warns: "virtual IP 10.0.0.5, which no node",
		},
		{name: "When no node is Ready, it should name the flag to set", err: "set --external-api-server-address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, address, stderr := NewWithT(t), Address{}, &strings.Builder{}
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			address.AddFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			err := address.Complete(t.Context(), func() (client.Client, error) { return fake.NewClientBuilder().WithObjects(tt.nodes...).Build(), nil }, stderr)
			g.Expect(address.Host).To(Equal(tt.want))
			if tt.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if tt.warns == "" {
				g.Expect(stderr.String()).To(BeEmpty())
				return
			}
			g.Expect(stderr.String()).To(And(HavePrefix("Warning: "), ContainSubstring(tt.warns)))
			g.Expect(strings.Contains(stderr.String(), "--external-api-server-address")).To(Equal(!strings.Contains(tt.warns, "virtual")), "who has a virtual IP needs no other address")
		})
	}
	t.Run("When there is no writer for warnings, it should succeed", func(t *testing.T) {
		g, address := NewWithT(t), Address{}
		c := fake.NewClientBuilder().WithObjects(node("a", "1"), node("b", "2")).Build()
		g.Expect(address.Complete(t.Context(), func() (client.Client, error) { return c, nil }, nil)).To(Succeed())
	})
	t.Run("When the user may only list nodes, it should choose a node address", func(t *testing.T) {
		g, address := NewWithT(t), Address{}
		c := fake.NewClientBuilder().WithObjects(node("a", "10.0.0.1")).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*appsv1.DaemonSetList); ok {
					return apierrors.NewForbidden(appsv1.Resource("daemonsets"), "", nil)
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
		g.Expect(address.Complete(t.Context(), func() (client.Client, error) { return c, nil }, nil)).To(Succeed())
		g.Expect(address.Host).To(Equal("10.0.0.1"))
	})
	t.Run("When an address is set and the management cluster is unreachable, it should use the address", func(t *testing.T) {
		address, stderr := Address{Host: "10.0.0.1"}, &strings.Builder{}
		g := NewWithT(t)
		g.Expect(address.Complete(t.Context(), func() (client.Client, error) { return nil, errors.New("no such host") }, stderr)).To(Succeed())
		g.Expect(stderr.String()).To(BeEmpty())
	})
	t.Run("When the management cluster is unreachable, it should return the error", func(t *testing.T) {
		address := Address{}
		err := address.Complete(t.Context(), func() (client.Client, error) { return nil, errors.New("no such host") }, nil)
		NewWithT(t).Expect(err).To(MatchError("no such host"))
	})
}
