// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	// flannelAnnotation is the annotation by which Flannel announces the backend of a node.
	flannelAnnotation = "flannel.alpha.coreos.com/backend-type"

	// VXLAN adds headers of this size, in bytes, to a packet between nodes.
	overheadIPv4 = 50
	overheadIPv6 = 70
)

// hasFlannel reports whether Flannel has run on a node.
func hasFlannel(node *corev1.Node) bool {
	return node.Annotations[flannelAnnotation] != ""
}

// split returns the nodes whose routes the agent writes, and the nodes whose routes Flannel writes. Flannel replaces
// the agent's route to a node, so the agent does not remove it: it would leave a gap until Flannel writes its own.
func (a *Agent) split(nodes []*corev1.Node) (routed, others []*corev1.Node) {
	for _, node := range nodes {
		if a.Flannel && node.Name != a.NodeName && hasFlannel(node) {
			others = append(others, node)
			continue
		}
		routed = append(routed, node)
	}
	return routed, others
}

// checkFlannel returns an error until Flannel has announced this node. Pods must not start before that.
func (a *Agent) checkFlannel(nodes []*corev1.Node) error {
	announced := slices.ContainsFunc(nodes, func(node *corev1.Node) bool {
		return node.Name == a.NodeName && hasFlannel(node)
	})
	if !a.Flannel || announced {
		return nil
	}
	return fmt.Errorf("waiting until Flannel has announced node %s; "+
		"if this persists, the log of container flannel has the cause", a.NodeName)
}

// overhead returns the size of the headers that VXLAN adds to packets of the pod networks.
func overhead(networks []netip.Prefix) int {
	if slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Addr().Is6() }) {
		return overheadIPv6
	}
	return overheadIPv4
}
