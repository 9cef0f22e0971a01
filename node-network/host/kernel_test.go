// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/google/nftables"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/support/netlists/churn"
)

// ownNetwork gives the test its own network namespace, with the interface node0. The namespace ends with the test: the
// test never unlocks its thread, so the runtime terminates it.
func ownNetwork(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	g := NewWithT(t)
	runtime.LockOSThread()
	g.Expect(unix.Unshare(unix.CLONE_NEWNET)).To(Succeed())
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "node0", MTU: 1430}}
	if err := netlink.LinkAdd(link); err != nil {
		link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "node0", MTU: 1430}}
		g.Expect(netlink.LinkAdd(link)).To(Succeed())
	}
	node0, err := netlink.LinkByName("node0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(netlink.LinkSetUp(node0)).To(Succeed())
	for _, text := range []string{"192.0.2.1/24", "2001:db8::1/64"} {
		address, err := netlink.ParseAddr(text)
		g.Expect(err).NotTo(HaveOccurred())
		address.Flags = unix.IFA_F_NODAD
		g.Expect(netlink.AddrAdd(node0, address)).To(Succeed())
	}
}

func TestRoutesOfTheKernel(t *testing.T) {
	ownNetwork(t)
	g := NewWithT(t)
	routes, err := NewRoutes()
	g.Expect(err).NotTo(HaveOccurred())
	list := func() []Route {
		found, err := routes.List()
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	to, via := netip.MustParsePrefix("10.0.2.0/24"), netip.MustParseAddr("192.0.2.2")

	theirs := Route{To: netip.MustParsePrefix("10.9.0.0/16"), Via: via}.toKernel()
	theirs.Protocol = unix.RTPROT_STATIC
	g.Expect(netlink.RouteAdd(theirs)).To(Succeed())
	g.Expect(list()).To(BeEmpty(), "a route of somebody else's is not the agent's")

	g.Expect(routes.Replace(Route{To: to, Via: via})).To(Succeed())
	six := Route{To: netip.MustParsePrefix("fd00:2::/64"), Via: netip.MustParseAddr("2001:db8::2")}
	g.Expect(routes.Replace(six)).To(Succeed())
	g.Expect(list()).To(ConsistOf(Route{To: to, Via: via}, six))

	moved := Route{To: to, Via: netip.MustParseAddr("192.0.2.3")}
	g.Expect(routes.Replace(moved)).To(Succeed())
	g.Expect(list()).To(ConsistOf(moved, six))

	g.Expect(routes.Delete(moved)).To(Succeed())
	g.Expect(routes.Delete(moved)).To(Succeed(), "a route that is gone is no error")
	g.Expect(list()).To(ConsistOf(six))

	elsewhere := Route{To: to, Via: netip.MustParseAddr("198.51.100.9")}
	g.Expect(routes.Replace(elsewhere)).To(MatchError(ContainSubstring("share a layer 2 network")))

	g.Expect(routes.MTU(netip.MustParseAddr("192.0.2.1"))).To(Equal(1430))
	_, err = routes.MTU(netip.MustParseAddr("192.0.2.77"))
	g.Expect(err).To(MatchError(ContainSubstring("no network interface of this node has its InternalIP 192.0.2.77")))
}

// TestBusyKernel adds and removes addresses on a node with so many addresses that the kernel reports them in several
// messages.
func TestBusyKernel(t *testing.T) {
	ownNetwork(t)
	g := NewWithT(t)
	routes, err := NewRoutes()
	g.Expect(err).NotTo(HaveOccurred())
	other, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(other.Close)
	node0, err := other.LinkByName("node0")
	g.Expect(err).NotTo(HaveOccurred())
	churn.Start(t, other, node0)
	for range 200 {
		g.Expect(routes.MTU(netip.MustParseAddr("192.0.2.1"))).To(Equal(1430))
	}
}

func TestMasqueradeOfTheKernel(t *testing.T) {
	ownNetwork(t)
	g := NewWithT(t)
	m := &Masquerade{Filter: NFTables{}}
	pods, cluster := prefixes("10.0.1.0/24", "fd00:1::/64"), prefixes("10.0.0.0/16")
	ensure := func() { g.Expect(m.Ensure(pods, cluster)).To(Succeed()) }
	ensure()
	before, err := NFTables{}.Read()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(before).NotTo(BeEmpty())
	ensure()
	if _, err := exec.LookPath("nft"); err == nil {
		listed, err := exec.CommandContext(t.Context(), "nft", "list", "table", "inet", tableName).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(listed))
		g.Expect(string(listed)).To(And(
			ContainSubstring("type nat hook postrouting priority srcnat; policy accept;"),
			ContainSubstring("ip saddr 10.0.1.0/24 ip daddr 10.0.0.0/16 return"), ContainSubstring("ip saddr 10.0.1.0/24 masquerade"),
			ContainSubstring("ip6 saddr fd00:1::/64 ip6 daddr ff00::/8 return"), ContainSubstring("ip6 saddr fd00:1::/64 masquerade"),
		))
	}

	connection, err := nftables.New()
	g.Expect(err).NotTo(HaveOccurred())
	connection.FlushTable(table())
	g.Expect(connection.Flush()).To(Succeed())
	g.Expect(NFTables{}.Read()).NotTo(Equal(before), "somebody's hand is seen")
	ensure()
	g.Expect(NFTables{}.Read()).To(Equal(before))
	g.Expect(NFTables{}.Write(rulesOf(prefixes("10.0.9.0/24", "fd00:1::/64"), cluster))).To(Succeed())
	g.Expect(NFTables{}.Read()).NotTo(Equal(before), "also when there are as many rules as before")
	ensure()
	g.Expect(NFTables{}.Read()).To(Equal(before))
}
