// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// In nftables mode, kube-proxy stores the addresses with open node ports in this set, in one table per IP family.
const (
	proxyTable   = "kube-proxy"
	nodePortsSet = "nodeport-ips"
)

// openNodePorts adds the address to kube-proxy's rules for node ports. In nftables mode, kube-proxy only looks for new
// addresses when it rewrites all of its rules, which may take an hour. If these rules do not exist, there is nothing to
// do. If a rewrite removes the address, the next renewal adds it again.
func (n *Network) openNodePorts(address netip.Addr) error {
	family := nftables.TableFamilyIPv6
	if address.Is4() {
		family = nftables.TableFamilyIPv4
	}
	set, err := n.filter.GetSetByName(&nftables.Table{Family: family, Name: proxyTable}, nodePortsSet)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading where kube-proxy opens node ports: %w", err)
	}
	open, err := n.filter.GetSetElements(set)
	if err != nil {
		return fmt.Errorf("reading where kube-proxy opens node ports: %w", err)
	}
	if slices.ContainsFunc(open, func(e nftables.SetElement) bool { return slices.Equal(e.Key, address.AsSlice()) }) {
		return nil
	}
	if err := n.filter.SetAddElements(set, []nftables.SetElement{{Key: address.AsSlice()}}); err != nil {
		return fmt.Errorf("opening node ports on %s: %w", address, err)
	}
	if err := n.filter.Flush(); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("opening node ports on %s: %w", address, err)
	}
	return nil
}
