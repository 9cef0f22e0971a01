// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine/network"
)

// nodeLink is the interface of every node except the first.
const nodeLink = "eth0"

// ensureRoutes adds routes from a node to the pods of the other nodes, and to Services for the node itself. The
// kube-apiserver needs the latter, because it calls webhooks through Services. Without any route, the kernel rejects
// a packet before kube-proxy's rules can redirect it, and the first node has no default route.
func ensureRoutes(n env.Node, nodes []env.Node) error {
	device := nodeLink
	if n.First() {
		device = env.Bridge
	}
	err := network.Do(n.Namespace, func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		self := net.ParseIP(n.Address)
		err = replaceRoute(netlink.Route{LinkIndex: link.Attrs().Index, Src: self, Scope: netlink.SCOPE_LINK}, env.ServiceNetwork)
		for _, other := range nodes {
			if err == nil && other.Number != n.Number {
				err = replaceRoute(netlink.Route{LinkIndex: link.Attrs().Index, Src: self, Gw: net.ParseIP(other.Address)}, other.Pods())
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("making the routes of node %s to Services and pods: %w", n.Name, err)
	}
	return nil
}

func replaceRoute(route netlink.Route, destination string) error {
	_, network, err := net.ParseCIDR(destination)
	if err != nil {
		return err
	}
	route.Dst = network
	return netlink.RouteReplace(&route)
}

// Cut disconnects a node from the network, or reconnects it: its pods continue to run, but are unreachable.
func Cut(n env.Node, off bool) error {
	if n.First() {
		return fmt.Errorf("node %s has the network of all: cut another one off", n.Name)
	}
	err := network.Do(env.Namespace, func() error {
		link, err := netlink.LinkByName(n.Namespace)
		if err != nil {
			return err
		}
		if off {
			return netlink.LinkSetDown(link)
		}
		return netlink.LinkSetUp(link)
	})
	if err != nil {
		return fmt.Errorf("the cable of node %s: %w", n.Name, err)
	}
	return nil
}
