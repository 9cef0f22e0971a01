// SPDX-License-Identifier: Apache-2.0

package podnetwork_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// settle is how long a node may take to change its network on a busy machine.
const settle = 2 * time.Minute

// TestFlannel runs the default network of a guest on nodes in two subnets with a router between them. Once Flannel runs,
// all nodes get the policy of Docker and ufw, which drops forwarded packets.
func TestFlannel(t *testing.T) {
	f := newFlannelFixture(t)
	a := f.node("a", "172.31.96.11", "10.132.0.0/24")
	near := f.node("near", "172.31.96.12", "10.132.1.0/24")
	far := f.node("far", "172.31.97.11", "10.132.2.0/24")

	// The nodes start as those of 0.1.0, which need a packet filter that accepts forwarded packets.
	near.run("node-network")
	a.run("node-network")
	near.waitForConfig("1500")
	a.waitForConfig("1500")
	pod, nearPod := a.pod(), near.pod()
	watch := f.watch(pod, nearPod)
	watch.waitForAnswers(t)

	for _, n := range []*flannelNode{near, a} {
		n.changeToFlannel()
		n.waitForConfig("1450")
	}
	a.waitForRoute(near.pods, "via 172.31.96.12 dev eth0", false)
	near.waitForRoute(a.pods, "via 172.31.96.11 dev eth0", false)
	far.changeToFlannel()
	far.waitForConfig("1450")
	a.waitForRoute(far.pods, "dev flannel.1", false)
	far.waitForRoute(a.pods, "dev flannel.1", false)

	t.Run("loses no packet between pods in one layer 2 network while their nodes change", func(t *testing.T) {
		sent, lost, gap := watch.stop()
		t.Logf("%d packets sent, %d lost, longest gap %v", sent, lost, gap)
		NewWithT(t).Expect(gap).To(BeNumerically("<", 30*time.Second))
	})
	f.dropForwarded(a, near, far)
	farPod := far.pod()
	t.Run("connects pods in routed subnets, with the pod's own address as source", func(t *testing.T) {
		f.transfer(t, pod, farPod)
		f.transfer(t, farPod, pod)
	})
	t.Run("connects pods in one layer 2 network without VXLAN", func(t *testing.T) {
		f.transfer(t, pod, nearPod)
	})
	t.Run("goes back to direct routes with a release without Flannel", func(t *testing.T) {
		a.stop()
		a.run("node-network")
		a.waitForRoute(near.pods, "via 172.31.96.12 dev eth0", true)
		f.acceptForwarded(a)
		f.transfer(t, pod, nearPod)
	})
}

// waitForRoute waits until the node has the route; ofAgent is whether it is one of the agent.
func (n *flannelNode) waitForRoute(to netip.Prefix, want string, ofAgent bool) {
	n.t.Helper()
	NewWithT(n.t).Eventually(func() string { return n.command("ip", "route", "show", to.String()) }).
		WithTimeout(settle).WithPolling(100*time.Millisecond).Should(And(
		ContainSubstring(want),
		WithTransform(func(s string) bool { return strings.Contains(s, "proto 89") }, Equal(ofAgent))), n.logs)
}

func (f *flannelFixture) dropForwarded(nodes ...*flannelNode) {
	for _, n := range nodes {
		n.command("iptables", "-P", "FORWARD", "DROP")
	}
}

func (f *flannelFixture) acceptForwarded(n *flannelNode) {
	n.command("iptables", "-P", "FORWARD", "ACCEPT")
}
