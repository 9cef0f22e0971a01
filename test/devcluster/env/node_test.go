// SPDX-License-Identifier: Apache-2.0

package env

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNodes(t *testing.T) {
	t.Run("When there is one node, it should have no zone", func(t *testing.T) {
		g := NewWithT(t)
		nodes := Nodes(1)
		g.Expect(nodes).To(HaveLen(1))
		g.Expect(nodes[0]).To(Equal(Node{Number: 1, Name: "management", Namespace: Namespace, Address: Gateway}))
	})
	t.Run("When there are MaxNodes nodes, their names, addresses, pod networks and zones should be unique and in range", func(t *testing.T) {
		g := NewWithT(t)
		seen := map[string]int{}
		for _, n := range Nodes(MaxNodes) {
			for _, unique := range []string{n.Name, n.Namespace, n.Address, n.Zone, n.Pods()} {
				seen[unique]++
			}
			g.Expect(netip.MustParsePrefix(Network).Contains(netip.MustParseAddr(n.Address))).To(BeTrue())
			pods := netip.MustParsePrefix(n.Pods())
			for _, address := range []string{n.PodGateway(), n.FirstPod(), n.LastPod()} {
				g.Expect(pods.Contains(netip.MustParseAddr(address))).To(BeTrue())
				g.Expect(netip.MustParsePrefix(PodNetwork).Contains(netip.MustParseAddr(address))).To(BeTrue())
			}
			// Names of interfaces have at most 15 bytes.
			g.Expect(len(n.Namespace)).To(BeNumerically("<=", 15))
		}
		g.Expect(seen).To(HaveLen(5 * MaxNodes))
	})
}
