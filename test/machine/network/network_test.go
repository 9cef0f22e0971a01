// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/openshift/hypershift/test/machine/network"
)

const left, right = "machine-test-left", "machine-test-right"

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
}

func newNamespaces(t *testing.T, names ...string) {
	t.Helper()
	needRoot(t)
	for _, name := range names {
		g := NewWithT(t)
		g.Expect(network.RemoveNamespace(name)).To(Succeed())
		g.Expect(network.EnsureNamespace(name)).To(Succeed())
		t.Cleanup(func() { g.Expect(network.RemoveNamespace(name)).To(Succeed()) })
	}
}

// in calls f in the namespace.
func in(t *testing.T, namespace string, f func(g *WithT)) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(network.Do(namespace, func() error { f(g); return nil })).To(Succeed())
}

func interfaces(g *WithT) []string {
	links, err := netlink.LinkList()
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, link := range links {
		names = append(names, link.Attrs().Name)
	}
	return names
}

func TestNamespace(t *testing.T) {
	newNamespaces(t, left)
	g := NewWithT(t)
	g.Expect(network.EnsureNamespace(left)).To(Succeed(), "what is there is left alone")
	in(t, left, func(g *WithT) {
		g.Expect(interfaces(g)).To(Equal([]string{"lo"}))
		lo, err := netlink.LinkByName("lo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(lo.Attrs().Flags & net.FlagUp).NotTo(BeZero())
	})
	g.Expect(network.RemoveNamespace(left)).To(Succeed())
	g.Expect(network.RemoveNamespace(left)).To(Succeed(), "what is not there is no error")
	g.Expect("/run/netns/" + left).NotTo(BeAnExistingFile())
}

func TestNamespaceLeftHalfMade(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	g.Expect(os.MkdirAll("/run/netns", 0o755)).To(Succeed())
	g.Expect(os.WriteFile("/run/netns/"+left, nil, 0o444)).To(Succeed())
	t.Cleanup(func() { g.Expect(network.RemoveNamespace(left)).To(Succeed()) })
	g.Expect(network.EnsureNamespace(left)).To(Succeed())
	in(t, left, func(g *WithT) { g.Expect(interfaces(g)).To(Equal([]string{"lo"})) })
}

// TestNamespaceBesideIPNetns checks that `ip netns add`, which may mount the folder of namespaces over itself, keeps no
// namespace from being removed.
func TestNamespaceBesideIPNetns(t *testing.T) {
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("there is no program ip")
	}
	g := NewWithT(t)
	needRoot(t)
	g.Expect(network.RemoveFolder()).To(Succeed(), "ip may have mounted the folder before")
	newNamespaces(t, left)
	g.Expect(exec.CommandContext(t.Context(), ip, "netns", "add", right).Run()).To(Succeed())
	t.Cleanup(func() { g.Expect(network.RemoveNamespace(right)).To(Succeed()) })
	g.Expect(network.RemoveNamespace(left)).To(Succeed())
	g.Expect("/run/netns/" + left).NotTo(BeAnExistingFile())
}

func TestDo(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	called := false
	err := network.Do("machine-test-none", func() error { called = true; return nil })
	g.Expect(err).To(MatchError(ContainSubstring("machine-test-none")))
	g.Expect(called).To(BeFalse(), "what was meant for another namespace must not happen in this one")
	failure := errors.New("failure")
	g.Expect(network.Do("", func() error { return failure })).To(MatchError(failure))
}

// cable returns a link from left, where it is connected to a bridge, to right.
func cable() network.Config {
	return network.Config{
		Bridges: []network.Bridge{{Name: "br0", Address: "172.31.97.1/24"}},
		Links: []network.Link{{
			Inside:  network.End{Name: "port0", Bridge: "br0", MTU: 1400},
			Outside: network.End{Namespace: right, Name: "eth0", MAC: "52:54:00:00:00:01", Address: "172.31.97.2/24", Gateway: "172.31.97.1"},
		}},
	}
}

// reachable checks that a TCP connection from right to the bridge in left works.
func reachable(t *testing.T) {
	t.Helper()
	var listener net.Listener
	in(t, left, func(g *WithT) {
		var err error
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "172.31.97.1:0")
		g.Expect(err).NotTo(HaveOccurred())
	})
	defer listener.Close()
	in(t, right, func(g *WithT) {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		connection.Close()
	})
}

func TestEnsure(t *testing.T) {
	newNamespaces(t, left, right)
	g := NewWithT(t)
	g.Expect(network.Ensure(left, cable())).To(Succeed())
	reachable(t)
	var index int
	in(t, right, func(g *WithT) {
		eth0, err := netlink.LinkByName("eth0")
		g.Expect(err).NotTo(HaveOccurred())
		index = eth0.Attrs().Index
		g.Expect(eth0.Attrs().HardwareAddr.String()).To(Equal("52:54:00:00:00:01"))
		routes, err := netlink.RouteGet(net.ParseIP("192.0.2.77"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(routes[0].Gw.String()).To(Equal("172.31.97.1"))
	})
	in(t, left, func(g *WithT) {
		port, err := netlink.LinkByName("port0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(port.Attrs().MTU).To(Equal(1400))
	})

	g.Expect(network.Ensure(left, cable())).To(Succeed())
	in(t, right, func(g *WithT) {
		eth0, err := netlink.LinkByName("eth0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(eth0.Attrs().Index).To(Equal(index), "what is there is left alone")
	})
}

func TestEnsureReplacesAStaleEnd(t *testing.T) {
	newNamespaces(t, left, right)
	g := NewWithT(t)
	// An interface with the name of our end may be something else: a bridge is not a veth pair.
	in(t, right, func(g *WithT) {
		g.Expect(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}})).To(Succeed())
	})
	g.Expect(network.Ensure(left, cable())).To(Succeed())
	reachable(t)

	// A restarted machine has an empty namespace, while the other end may still exist for a moment.
	g.Expect(network.RemoveNamespace(left)).To(Succeed())
	g.Expect(network.EnsureNamespace(left)).To(Succeed())
	g.Expect(network.Ensure(left, cable())).To(Succeed())
	reachable(t)
}

func TestEnsureErrors(t *testing.T) {
	newNamespaces(t, left, right)
	tests := []struct {
		name   string
		change func(*network.Config)
		want   string
	}{
		{"When the other namespace is missing, the error should say so", func(c *network.Config) { c.Links[0].Outside.Namespace = "machine-test-none" }, "start the machine it belongs to first"},
		{"When the bridge is missing, the error should name it", func(c *network.Config) { c.Links[0].Inside.Bridge = "br9" }, "bridge br9"},
		{"When an address is invalid, the error should name it", func(c *network.Config) { c.Links[0].Outside.Address = "nonsense" }, "nonsense"},
		{"When a gateway is invalid, the error should name it", func(c *network.Config) { c.Links[0].Outside.Gateway = "nonsense" }, "nonsense"},
		{"When a MAC address is invalid, the error should name it", func(c *network.Config) { c.Links[0].Outside.MAC = "nonsense" }, "nonsense"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := cable()
			tt.change(&config)
			NewWithT(t).Expect(network.Ensure(left, config)).To(MatchError(ContainSubstring(tt.want)))
		})
	}
	t.Run("When the machine's own namespace is missing, the error should say so", func(t *testing.T) {
		NewWithT(t).Expect(network.Ensure("machine-test-none", cable())).To(MatchError(ContainSubstring("machine-test-none")))
	})
}
