// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"net"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/tunnel/agent"
)

func TestNodeNetworks(t *testing.T) {
	g := NewWithT(t)
	addresses, err := net.InterfaceAddrs()
	g.Expect(err).NotTo(HaveOccurred())
	ofHost := func(cluster ...netip.Prefix) []netip.Prefix {
		networks, err := agent.NodeNetworks(cluster)()
		g.Expect(err).NotTo(HaveOccurred())
		return networks
	}
	for _, address := range addresses {
		prefix := netip.MustParsePrefix(address.String())
		ip := prefix.Addr()
		single := netip.PrefixFrom(ip, ip.BitLen())
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			g.Expect(ofHost()).NotTo(ContainElement(single))
			continue
		}
		g.Expect(ofHost()).To(ContainElement(single), "the node itself")
		if prefix.Bits() == 0 {
			continue
		}
		cluster := netip.PrefixFrom(ip, prefix.Bits()-1).Masked()
		g.Expect(ofHost(cluster)).To(ContainElement(prefix.Masked()), "the pods of the node")
		g.Expect(ofHost(prefix.Masked())).To(ContainElement(single), "an overlay of all nodes")
	}
}
