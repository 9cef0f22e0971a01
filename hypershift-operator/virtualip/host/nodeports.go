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

// The set in which kube-proxy, in its mode nftables, keeps the addresses on which node ports are open, in a table of each IP family.
const (
	proxyTable   = "kube-proxy"
	nodePortsSet = "nodeport-ips"
)

// openNodePorts has kube-proxy's rules open node ports on the address. In mode nftables kube-proxy itself looks for addresses only when it
// writes all of its rules anew, which can be an hour away. Where it has no such rules there is nothing to do; what it forgets in a
// rewrite is put in again with the next renewal.
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
