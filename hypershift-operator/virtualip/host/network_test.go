// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/nftables"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/openshift/hypershift/hypershift-operator/virtualip/segment"
	"github.com/openshift/hypershift/support/netlists/churn"
)

var (
	four = netip.MustParseAddr("192.0.2.100")
	six  = netip.MustParseAddr("2001:db8::100")
)

func open(t *testing.T, node *segment.Node, name string) *Network {
	t.Helper()
	var network *Network
	var err error
	node.Do(func() { network, err = Open(name) })
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(network.Close)
	return network
}

func TestNetwork(t *testing.T) {
	s := segment.New(t)
	node, other := s.Node(), s.Node()
	network := open(t, node, "")
	for _, address := range []netip.Addr{four, six} {
		t.Run("When "+address.String()+" is assigned, neighbors should learn its location, and the kernel should remove it after its lifetime", func(t *testing.T) {
			g := NewWithT(t)
			// Older kernels report a connected or disconnected cable with a short delay.
			g.Eventually(func() error { return network.Check(address) }, time.Minute, 50*time.Millisecond).Should(Succeed())
			added, err := network.Hold(address, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(added).To(BeTrue())
			g.Expect(node.Has(address)).To(BeTrue())
			// A bridge with a new port forgets its neighbors.
			g.Eventually(func() string {
				s.Remember(address, other.Hardware)
				if err := network.Announce(address); err != nil {
					return err.Error()
				}
				return s.Place(address)
			}, 30*time.Second, 100*time.Millisecond).Should(Equal(node.Hardware.String()))

			added, err = network.Hold(address, 2*time.Second)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(added).To(BeFalse(), "it was there")
			g.Eventually(func() bool { return node.Has(address) }, 2*time.Minute, 50*time.Millisecond).Should(BeFalse(), "the kernel takes it off by itself")
		})
		t.Run("When "+address.String()+" is dropped twice, it should be removed without an error", func(t *testing.T) {
			g := NewWithT(t)
			_, err := network.Hold(address, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(network.Drop(address)).To(Succeed())
			g.Expect(node.Has(address)).To(BeFalse())
			g.Expect(network.Drop(address)).To(Succeed())
		})
	}
}

// TestBusyNode adds and removes addresses on a node with so many addresses that the kernel lists them in several
// messages.
func TestBusyNode(t *testing.T) {
	node := segment.New(t).Node()
	network := open(t, node, "")
	link, err := node.Handle.LinkByName(segment.Interface)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	churn.Start(t, node.Handle, link)
	t.Run("When other addresses are added and removed, it should still assign its own", func(t *testing.T) {
		g := NewWithT(t)
		for range 200 {
			_, err := network.Hold(four, time.Minute)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(node.Has(four)).To(BeTrue())
		}
	})
}

func TestNodePorts(t *testing.T) {
	s := segment.New(t)
	node := s.Node()
	network := open(t, node, "")
	var proxy *nftables.Conn
	var err error
	node.Do(func() { proxy, err = nftables.New(nftables.AsLasting()) })
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = proxy.CloseLasting() })
	for _, tt := range []struct {
		name    string
		family  nftables.TableFamily
		key     nftables.SetDatatype
		address netip.Addr
	}{
		{"IPv4", nftables.TableFamilyIPv4, nftables.TypeIPAddr, four},
		{"IPv6", nftables.TableFamilyIPv6, nftables.TypeIP6Addr, six},
	} {
		t.Run("When kube-proxy has rules for "+tt.name+", node ports should be open on the address, even after kube-proxy has rewritten its rules", func(t *testing.T) {
			g := NewWithT(t)
			_, err := network.Hold(tt.address, time.Minute)
			g.Expect(err).NotTo(HaveOccurred(), "without rules of kube-proxy there is nothing to open")
			set := &nftables.Set{Table: &nftables.Table{Family: tt.family, Name: "kube-proxy"}, Name: "nodeport-ips", KeyType: tt.key}
			proxy.AddTable(set.Table)
			g.Expect(proxy.AddSet(set, nil)).To(Succeed())
			g.Expect(proxy.Flush()).To(Succeed())
			for range 2 {
				for range 2 {
					_, err := network.Hold(tt.address, time.Minute)
					g.Expect(err).NotTo(HaveOccurred())
				}
				open, err := proxy.GetSetElements(set)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(open).To(ConsistOf(HaveField("Key", tt.address.AsSlice())))
				proxy.FlushSet(set)
				g.Expect(proxy.Flush()).To(Succeed())
			}
		})
	}
}

func TestNetworkRefuses(t *testing.T) {
	s := segment.New(t)
	node := s.Node()
	own := netip.MustParseAddr("192.0.2.1")
	down := s.Node()
	link, err := down.Handle.LinkByName(segment.Interface)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(down.Handle.LinkSetDown(link)).To(Succeed())
	for _, tt := range []struct {
		name    string
		node    *segment.Node
		link    string
		address netip.Addr
		says    string
	}{
		{name: "When the address is the node's own, it should return an error", node: node, address: own, says: "192.0.2.1 is this node's own address"},
		{name: "When no interface is in the subnet of the address, it should return an error with the remedy", node: node, address: netip.MustParseAddr("198.51.100.1"), says: "choose an address of the nodes' subnet"},
		{name: "When the named interface is missing, it should return an error that names it", node: node, link: "eth7", address: four, says: "network interface eth7"},
		{name: "When the interface is not Ethernet, it should return an error that names it", node: node, link: "lo", address: four, says: "network interface lo"},
		{name: "When the interface is down, it should return an error", node: down, link: segment.Interface, address: four, says: "node0 for 192.0.2.100 is down"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			network := open(t, tt.node, tt.link)
			NewWithT(t).Eventually(func() error { return network.Check(tt.address) }, time.Minute, 50*time.Millisecond).Should(MatchError(ContainSubstring(tt.says)))
		})
	}
	t.Run("When the node's own address is dropped, it should stay assigned", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(open(t, node, "").Drop(own)).To(Succeed())
		g.Expect(node.Has(own)).To(BeTrue())
	})
	t.Run("When the interface is named and in another subnet, it should assign the address", func(t *testing.T) {
		g, elsewhere := NewWithT(t), netip.MustParseAddr("198.51.100.1")
		network := open(t, node, segment.Interface)
		g.Expect(network.Check(elsewhere)).To(Succeed())
		_, err := network.Hold(elsewhere, time.Minute)
		g.Expect(err).NotTo(HaveOccurred())
		routes, err := node.Handle.RouteGet(netip.MustParseAddr("192.0.2.254").AsSlice())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(routes).To(ContainElement(WithTransform(func(r netlink.Route) string { return r.Src.String() }, Equal("192.0.2.1"))), "what the node sends carries its own address")
		g.Expect(network.Drop(elsewhere)).To(Succeed())
	})
}
