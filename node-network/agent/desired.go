// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/node-network/host"
)

// Desired is the desired state of the network of one node.
type Desired struct {
	// PodNetworks are the node's pod networks; empty until the cluster has assigned some.
	PodNetworks []netip.Prefix
	// Addresses are the node's InternalIPs.
	Addresses []netip.Addr
	// Routes are the routes to the pods of the other nodes, sorted.
	Routes []host.Route
	// Problems are the errors of nodes whose pods cannot be reached.
	Problems []error
}

// Desire computes the desired network of the named node from all nodes of the cluster.
func Desire(nodeName string, nodes []*corev1.Node) Desired {
	var desired Desired
	for _, node := range nodes {
		networks, err := podNetworks(node)
		if err != nil {
			desired.Problems = append(desired.Problems, err)
			continue
		}
		addresses := internalAddresses(node)
		if node.Name == nodeName {
			desired.PodNetworks, desired.Addresses = networks, addresses
			continue
		}
		for _, network := range networks {
			via, ok := sameFamily(addresses, network)
			if !ok {
				desired.Problems = append(desired.Problems, fmt.Errorf(
					"pods %s of node %s cannot be reached: the node has no InternalIP of that address family", network, node.Name))
				continue
			}
			desired.Routes = append(desired.Routes, host.Route{To: network, Via: via})
		}
	}
	slices.SortFunc(desired.Routes, compareRoutes)
	return desired
}

func compareRoutes(a, b host.Route) int {
	return cmp.Or(a.To.Addr().Compare(b.To.Addr()), cmp.Compare(a.To.Bits(), b.To.Bits()), a.Via.Compare(b.Via))
}

// podNetworks returns spec.podCIDRs, or spec.podCIDR if only that is set.
func podNetworks(node *corev1.Node) ([]netip.Prefix, error) {
	texts := node.Spec.PodCIDRs
	if len(texts) == 0 && node.Spec.PodCIDR != "" {
		texts = []string{node.Spec.PodCIDR}
	}
	var networks []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("node %s has an invalid pod CIDR %q: %w", node.Name, text, err)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// internalAddresses returns the node's InternalIPs, without invalid addresses.
func internalAddresses(node *corev1.Node) []netip.Addr {
	var addresses []netip.Addr
	for _, address := range node.Status.Addresses {
		if address.Type != corev1.NodeInternalIP {
			continue
		}
		if ip, err := netip.ParseAddr(address.Address); err == nil {
			addresses = append(addresses, ip.Unmap())
		}
	}
	return addresses
}

func sameFamily(addresses []netip.Addr, network netip.Prefix) (netip.Addr, bool) {
	for _, address := range addresses {
		if address.Is4() == network.Addr().Is4() {
			return address, true
		}
	}
	return netip.Addr{}, false
}
