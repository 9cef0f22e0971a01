// SPDX-License-Identifier: Apache-2.0

// Package host assigns virtual addresses to a network interface of this node, announces them on the segment, and
// removes them.
package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/support/netlists"
)

// Network manages addresses in the network namespace in which it was opened.
type Network struct {
	handle *netlink.Handle
	filter *nftables.Conn
	// socket only sends frames.
	socket int
	// name is the interface for all addresses. If it is empty, the interface whose subnet contains the address is used.
	name string
}

// Open opens the caller's network namespace. It requires the capabilities NET_ADMIN and NET_RAW.
func Open(name string) (*Network, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening the node's network interfaces: %w", err)
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("opening a socket for announcements, which needs the capability NET_RAW: %w", err)
	}
	filter, err := nftables.New(nftables.AsLasting())
	if err != nil {
		handle.Close()
		_ = unix.Close(socket)
		return nil, fmt.Errorf("opening the node's packet filter: %w", err)
	}
	return &Network{handle: handle, filter: filter, socket: socket, name: name}, nil
}

// Close releases the resources; assigned addresses stay.
func (n *Network) Close() {
	n.handle.Close()
	_ = n.filter.CloseLasting()
	_ = unix.Close(n.socket)
}

// Check returns the reason why this node cannot have an address now; nil if it can.
func (n *Network) Check(address netip.Addr) error {
	link, err := n.link(address)
	if err != nil {
		return err
	}
	attrs := link.Attrs()
	if attrs.Flags&net.FlagUp == 0 || attrs.OperState != netlink.OperUp && attrs.OperState != netlink.OperUnknown {
		return fmt.Errorf("network interface %s for %s is %s", attrs.Name, address, attrs.OperState)
	}
	if len(attrs.HardwareAddr) != hardwareLength {
		return fmt.Errorf("network interface %s for %s is not an Ethernet interface", attrs.Name, address)
	}
	return nil
}

// Hold assigns the address to its interface or extends its lifetime, and opens the node ports on it. The kernel removes
// it after lifetime, rounded down to seconds, whatever happens to this process. It reports whether the address was not
// assigned before.
func (n *Network) Hold(address netip.Addr, lifetime time.Duration) (added bool, err error) {
	link, err := n.link(address)
	if err != nil {
		return false, err
	}
	found, err := n.held(address)
	if err != nil {
		return false, err
	}
	one := single(address)
	one.ValidLft = int(lifetime / time.Second)
	// The address is never preferred and has no route, so that the node sends its own traffic from its own address.
	one.Flags = unix.IFA_F_NODAD | unix.IFA_F_NOPREFIXROUTE
	if err := n.handle.AddrReplace(link, one); err != nil {
		return false, fmt.Errorf("putting %s on network interface %s: %w", address, link.Attrs().Name, err)
	}
	return len(found) == 0, n.openNodePorts(address)
}

// Drop removes the address from whichever interface has it. It is not an error if there is none.
func (n *Network) Drop(address netip.Addr) error {
	found, err := n.held(address)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range found {
		link, err := n.handle.LinkByIndex(one.LinkIndex)
		if err == nil {
			err = n.handle.AddrDel(link, single(address))
		}
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("taking %s off: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// Announce announces the address on its segment.
func (n *Network) Announce(address netip.Addr) error {
	link, err := n.link(address)
	if err != nil {
		return err
	}
	for _, frame := range announcements(address, link.Attrs().HardwareAddr) {
		if err := unix.Sendto(n.socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: hardwareLength}); err != nil {
			return fmt.Errorf("announcing %s on network interface %s: %w", address, link.Attrs().Name, err)
		}
	}
	return nil
}

// link returns the interface for the address.
func (n *Network) link(address netip.Addr) (netlink.Link, error) {
	if n.name != "" {
		link, err := n.handle.LinkByName(n.name)
		if err != nil {
			return nil, fmt.Errorf("finding network interface %s for %s: %w", n.name, address, err)
		}
		return link, nil
	}
	all, err := n.addresses(address)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		prefix := prefixOf(one)
		if prefix.IsSingleIP() || !prefix.Contains(address) {
			continue
		}
		if prefix.Addr() == address {
			return nil, fmt.Errorf("%s is this node's own address; choose an unused address for the virtual IP", address)
		}
		return n.handle.LinkByIndex(one.LinkIndex)
	}
	return nil, fmt.Errorf("no network interface of this node is in the network of %s: choose an address of the nodes' subnet, or name the interface", address)
}

// held returns the assignments of the address as a virtual IP, with a single-address prefix.
func (n *Network) held(address netip.Addr) ([]netlink.Addr, error) {
	all, err := n.addresses(address)
	if err != nil {
		return nil, err
	}
	var found []netlink.Addr
	for _, one := range all {
		if prefixOf(one) == netip.PrefixFrom(address, address.BitLen()) {
			found = append(found, one)
		}
	}
	return found, nil
}

// addresses returns all addresses of the node in the same family.
func (n *Network) addresses(like netip.Addr) ([]netlink.Addr, error) {
	family := netlink.FAMILY_V6
	if like.Is4() {
		family = netlink.FAMILY_V4
	}
	all, err := netlists.Whole(func() ([]netlink.Addr, error) { return n.handle.AddrList(nil, family) })
	if err != nil {
		return nil, fmt.Errorf("listing the addresses of this node: %w", err)
	}
	return all, nil
}

func prefixOf(one netlink.Addr) netip.Prefix {
	if one.IPNet == nil {
		return netip.Prefix{}
	}
	address, _ := netip.AddrFromSlice(one.IP)
	ones, _ := one.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), ones)
}

func single(address netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}}
}
