// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package segment provides a layer 2 segment of network namespaces for tests: a neighbor that observes, and nodes.
package segment

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/support/netlists"
)

// Interface is the name of each node's network interface.
const Interface = "node0"

// Segment is a network segment with the subnets 192.0.2.0/24 and 2001:db8::/64.
type Segment struct {
	t        testing.TB
	neighbor *netlink.Handle
	space    netns.NsHandle
	bridge   netlink.Link
	nodes    int
}

// Node is a node on the segment. The nodes have the addresses .1, .2 and so on.
type Node struct {
	Handle   *netlink.Handle
	Space    netns.NsHandle
	Hardware net.HardwareAddr
	t        testing.TB
}

// New creates a segment without nodes, which lives as long as the test. It requires root.
func New(t testing.TB) *Segment {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	s := &Segment{t: t}
	s.space, s.neighbor = newSpace(t)
	must(t, s.neighbor.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 254}}}))
	s.bridge = link(t, s.neighbor, "br0")
	up(t, s.neighbor, s.bridge, 254)
	return s
}

// Node adds a node.
func (s *Segment) Node() *Node {
	s.t.Helper()
	s.nodes++
	n := &Node{t: s.t}
	n.Space, n.Handle = newSpace(s.t)
	outer := fmt.Sprintf("to%d", s.nodes)
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: outer}, PeerName: Interface, PeerNamespace: netlink.NsFd(n.Space)}
	must(s.t, s.neighbor.LinkAdd(pair))
	port := link(s.t, s.neighbor, outer)
	must(s.t, s.neighbor.LinkSetMaster(port, s.bridge))
	must(s.t, s.neighbor.LinkSetUp(port))
	inner := link(s.t, n.Handle, Interface)
	up(s.t, n.Handle, inner, s.nodes)
	n.Hardware = inner.Attrs().HardwareAddr
	return n
}

// Remember sets the hardware address of an address in the neighbor's cache, as after a connection to it.
func (s *Segment) Remember(address netip.Addr, place net.HardwareAddr) {
	s.t.Helper()
	must(s.t, s.neighbor.NeighSet(&netlink.Neigh{
		LinkIndex: s.bridge.Attrs().Index, IP: address.AsSlice(), HardwareAddr: place, State: unix.NUD_STALE, Family: family(address),
	}))
}

// Place returns the hardware address of an address according to the neighbor's cache; empty if unknown.
func (s *Segment) Place(address netip.Addr) string {
	all, err := netlists.Whole(func() ([]netlink.Neigh, error) { return s.neighbor.NeighList(s.bridge.Attrs().Index, family(address)) })
	must(s.t, err)
	for _, one := range all {
		if one.IP.Equal(address.AsSlice()) {
			return one.HardwareAddr.String()
		}
	}
	return ""
}

// Has reports whether a node has an address.
func (n *Node) Has(address netip.Addr) bool {
	all, err := netlists.Whole(func() ([]netlink.Addr, error) { return n.Handle.AddrList(nil, family(address)) })
	must(n.t, err)
	for _, one := range all {
		if one.IP.Equal(address.AsSlice()) {
			return true
		}
	}
	return false
}

// Do runs a function in the node's network namespace.
func (n *Node) Do(f func()) {
	within(n.t, n.Space, f)
}

func family(address netip.Addr) int {
	if address.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

func newSpace(t testing.TB) (netns.NsHandle, *netlink.Handle) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	must(t, err)
	defer func() { _ = own.Close() }()
	space, err := netns.New()
	must(t, err)
	must(t, netns.Set(own))
	handle, err := netlink.NewHandleAt(space, unix.NETLINK_ROUTE)
	must(t, err)
	t.Cleanup(func() {
		handle.Close()
		_ = space.Close()
	})
	return space, handle
}

func within(t testing.TB, space netns.NsHandle, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	must(t, err)
	defer func() { _ = own.Close() }()
	must(t, netns.Set(space))
	defer func() { must(t, netns.Set(own)) }()
	f()
}

func link(t testing.TB, handle *netlink.Handle, name string) netlink.Link {
	t.Helper()
	found, err := handle.LinkByName(name)
	must(t, err)
	return found
}

func up(t testing.TB, handle *netlink.Handle, one netlink.Link, number int) {
	t.Helper()
	must(t, handle.LinkSetUp(one))
	for _, text := range []string{fmt.Sprintf("192.0.2.%d/24", number), fmt.Sprintf("2001:db8::%x/64", number)} {
		address, err := netlink.ParseAddr(text)
		must(t, err)
		address.Flags = unix.IFA_F_NODAD
		must(t, handle.AddrAdd(one, address))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
