// SPDX-License-Identifier: Apache-2.0

// Package podranges calculates the ranges of pod addresses that nodes get from the cluster networks. It finds cluster
// networks from which no node can get a range.
package podranges

import (
	"fmt"
	"net/netip"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	// Defaults of the API when a network has no hostPrefix.
	defaultPrefix   = 23
	defaultPrefixV6 = 64
	// widestV6 is how many bits longer than the IPv6 network the range of a node may be. kube-controller-manager exits
	// beyond that.
	widestV6 = 16
	// most is the maximum number of bits that Nodes counts with, so that the result fits an int.
	most = 30
)

// FromControlPlane reports whether the control plane of a Kubernetes release gives nodes their ranges.
func FromControlPlane(n *hyperv1.ClusterNetworking) bool {
	return n.NetworkType != hyperv1.Other || enabled(n)
}

// PerNode reports whether each node gets a range of a cluster network in any release.
func PerNode(n *hyperv1.ClusterNetworking) bool {
	return enabled(n) || n.NetworkType != hyperv1.Other && n.NetworkType != hyperv1.Calico
}

func enabled(n *hyperv1.ClusterNetworking) bool {
	return n.AllocateNodeCIDRs != nil && *n.AllocateNodeCIDRs == hyperv1.AllocateNodeCIDRsEnabled
}

// HostPrefix returns the prefix length of the range that each node gets.
func HostPrefix(entry hyperv1.ClusterNetworkEntry) int {
	network, err := netip.ParsePrefix(entry.CIDR.String())
	switch {
	case entry.HostPrefix != 0:
		return int(entry.HostPrefix)
	case err == nil && network.Addr().Is6():
		return defaultPrefixV6
	default:
		return defaultPrefix
	}
}

// Faults returns the reasons why nodes of a cluster cannot get ranges, or pods cannot reach Services. kubernetes is true
// for a release of upstream Kubernetes. Networks of plugins that use no ranges have no faults.
func Faults(n *hyperv1.ClusterNetworking, kubernetes bool) []error {
	fromControlPlane := enabled(n) || kubernetes && FromControlPlane(n)
	if !fromControlPlane && !PerNode(n) {
		return nil
	}
	var faults []error
	for _, entry := range n.ClusterNetwork {
		network, err := netip.ParsePrefix(entry.CIDR.String())
		if err != nil {
			continue // Reported elsewhere.
		}
		prefix := HostPrefix(entry)
		switch {
		case prefix < network.Bits():
			faults = append(faults, fmt.Errorf("spec.networking.clusterNetwork: %s is smaller than the range of a node, which is "+
				"a /%d; set hostPrefix to more than %d, or choose a larger network", network, prefix, network.Bits()))
		case fromControlPlane && network.Addr().Is6() && prefix-network.Bits() > widestV6:
			faults = append(faults, fmt.Errorf("spec.networking.clusterNetwork: %s has too many ranges of the size /%d for "+
				"kube-controller-manager; set hostPrefix to at most %d, or choose a network of /%d to /%d", network, prefix,
				network.Bits()+widestV6, prefix-widestV6, prefix))
		}
	}
	return append(faults, families(n)...)
}

// families returns a fault if pods have no addresses of the family that Services have by default.
func families(n *hyperv1.ClusterNetworking) []error {
	if len(n.ServiceNetwork) == 0 || len(n.ClusterNetwork) == 0 {
		return nil
	}
	services, err := netip.ParsePrefix(n.ServiceNetwork[0].CIDR.String())
	if err != nil {
		return nil // Reported elsewhere.
	}
	for _, entry := range n.ClusterNetwork {
		pods, err := netip.ParsePrefix(entry.CIDR.String())
		if err != nil || pods.Addr().Is6() == services.Addr().Is6() {
			return nil // An invalid network is reported elsewhere.
		}
	}
	return []error{fmt.Errorf("spec.networking: Services have addresses of %s, and no pod has an address of that IP family; "+
		"add a network of the family to clusterNetwork, or choose another serviceNetwork", services)}
}

// Nodes returns how many nodes can get ranges of all cluster networks. Without ranges it returns false.
func Nodes(n *hyperv1.ClusterNetworking, kubernetes bool) (int, bool) {
	if !PerNode(n) && (!kubernetes || !FromControlPlane(n)) {
		return 0, false
	}
	bits, known := most, false
	for _, entry := range n.ClusterNetwork {
		network, err := netip.ParsePrefix(entry.CIDR.String())
		if err != nil {
			return 0, false
		}
		bits, known = min(bits, HostPrefix(entry)-network.Bits()), true
	}
	if bits < 0 {
		return 0, known
	}
	return 1 << bits, known
}
