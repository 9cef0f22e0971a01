// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// NodeNetworks returns a function that reads the networks of this node from its interfaces. These are its addresses,
// and the networks of its pods: those within the cluster networks to which an interface is connected.
func NodeNetworks(cluster []netip.Prefix) func() ([]netip.Prefix, error) {
	return func() ([]netip.Prefix, error) {
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			return nil, fmt.Errorf("reading the addresses of this node: %w", err)
		}
		var networks []netip.Prefix
		for _, address := range addresses {
			prefix, err := netip.ParsePrefix(address.String())
			if err != nil {
				continue
			}
			networks = append(networks, localPart(prefix, cluster)...)
		}
		slices.SortFunc(networks, netip.Prefix.Compare)
		return slices.Compact(networks), nil
	}
}

// localPart returns what is on the node itself of the network of an interface.
func localPart(prefix netip.Prefix, cluster []netip.Prefix) []netip.Prefix {
	ip := prefix.Addr()
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return nil
	}
	for _, network := range cluster {
		// The complete cluster network is on an interface of an overlay, whose other addresses are on other nodes.
		if network.Contains(ip) && prefix.Bits() > network.Bits() {
			return []netip.Prefix{prefix.Masked()}
		}
	}
	return []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}
}
