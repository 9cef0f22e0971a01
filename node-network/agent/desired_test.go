// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/node-network/host"
)

func node(name string, podCIDRs []string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Spec.PodCIDRs = podCIDRs
	for _, address := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
	return n
}

func route(to, via string) host.Route {
	return host.Route{To: netip.MustParsePrefix(to), Via: netip.MustParseAddr(via)}
}

func TestDesire(t *testing.T) {
	legacy := node("b", nil, "192.0.2.2")
	legacy.Spec.PodCIDR = "10.0.2.0/24"
	named := node("b", []string{"10.0.2.0/24"}, "not-an-address", "192.0.2.2")
	named.Status.Addresses = append([]corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "b"}, {Type: corev1.NodeExternalIP, Address: "203.0.113.9"},
	}, named.Status.Addresses...)

	for _, test := range []struct {
		name     string
		nodes    []*corev1.Node
		own      []string
		routes   []host.Route
		problems []string
	}{
		{name: "When the node is alone, it should need no route", nodes: []*corev1.Node{node("a", []string{"10.0.1.0/24"}, "192.0.2.1")}, own: []string{"10.0.1.0/24"}},
		{name: "When the own node is not known yet, it should return no pod network", nodes: []*corev1.Node{node("b", []string{"10.0.2.0/24"}, "192.0.2.2")},
			routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}},
		{
			name: "When there are other nodes, it should return a sorted route to each",
			nodes: []*corev1.Node{
				node("c", []string{"10.0.3.0/24"}, "192.0.2.3"), node("a", []string{"10.0.1.0/24"}, "192.0.2.1"), node("b", []string{"10.0.2.0/24"}, "192.0.2.2"),
			},
			own:    []string{"10.0.1.0/24"},
			routes: []host.Route{route("10.0.2.0/24", "192.0.2.2"), route("10.0.3.0/24", "192.0.2.3")},
		},
		{name: "When only spec.podCIDR is set, it should use that field", nodes: []*corev1.Node{legacy}, routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}},
		{name: "When a node has other addresses too, it should use the InternalIP", nodes: []*corev1.Node{named}, routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}},
		{
			name:  "When nodes have two address families, it should match CIDRs and addresses by family",
			nodes: []*corev1.Node{node("b", []string{"10.0.2.0/24", "fd00:2::/64"}, "192.0.2.2", "2001:db8::2")},
			routes: []host.Route{
				route("10.0.2.0/24", "192.0.2.2"), route("fd00:2::/64", "2001:db8::2"),
			},
		},
		{name: "When a CIDR has host bits, it should mask them", nodes: []*corev1.Node{node("b", []string{"10.0.2.7/24"}, "192.0.2.2")},
			routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}},
		{name: "When an address is an IPv4-mapped IPv6 address, it should be treated as IPv4", nodes: []*corev1.Node{node("b", []string{"10.0.2.0/24"}, "::ffff:192.0.2.2")},
			routes: []host.Route{route("10.0.2.0/24", "192.0.2.2")}},
		{name: "When another node has no CIDR yet, it should return no route and no problem", nodes: []*corev1.Node{node("b", nil, "192.0.2.2")}},
		{
			name:     "When a node has no address of the family, it should name the node and still serve the others",
			nodes:    []*corev1.Node{node("b", []string{"10.0.2.0/24"}, "2001:db8::2"), node("c", []string{"10.0.3.0/24"}, "192.0.2.3")},
			routes:   []host.Route{route("10.0.3.0/24", "192.0.2.3")},
			problems: []string{"10.0.2.0/24 of node b cannot be reached: the node has no InternalIP"},
		},
		{
			name:     "When a CIDR is invalid, it should name the node and the CIDR",
			nodes:    []*corev1.Node{node("b", []string{"nonsense"}, "192.0.2.2")},
			problems: []string{`node b has an invalid pod CIDR "nonsense"`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			desired := Desire("a", test.nodes)
			var own []string
			for _, network := range desired.PodNetworks {
				own = append(own, network.String())
			}
			g.Expect(own).To(Equal(test.own))
			g.Expect(desired.Routes).To(Equal(test.routes))
			g.Expect(desired.Problems).To(HaveLen(len(test.problems)))
			for i, problem := range test.problems {
				g.Expect(desired.Problems[i]).To(MatchError(ContainSubstring(problem)))
			}
		})
	}
}
