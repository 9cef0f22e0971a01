// SPDX-License-Identifier: Apache-2.0

// Package dnssize computes how many CoreDNS pods a guest needs, and how large they are, from the number of its nodes.
package dnssize

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// nodesPerReplica is the ratio of the cluster-proportional-autoscaler's examples for DNS.
	nodesPerReplica = 16
	// maxReplicas bounds the watches of the API server: each pod watches all Services and EndpointSlices.
	maxReplicas = 32
)

// steps holds the memory of a pod by the number of nodes. CoreDNS needs about 1 MiB for 1000 Services and pods behind
// them, and its cache.
var steps = []struct {
	nodes          int
	request, limit string
}{
	{100, "60Mi", "170Mi"},
	{500, "120Mi", "340Mi"},
	{2000, "240Mi", "680Mi"},
	{math.MaxInt, "480Mi", "1360Mi"},
}

// Replicas returns the number of pods for a number of nodes. It is at least 1.
func Replicas(nodes int) int32 {
	return int32(max(1, min(maxReplicas, (nodes+nodesPerReplica-1)/nodesPerReplica)))
}

// Memory returns the memory request and limit of a pod for a number of nodes. limit is the present limit, zero if there
// is none. Each change restarts the pods, so a larger present limit stays until the nodes need less than half of it.
func Memory(nodes int, limit resource.Quantity) (request, next resource.Quantity) {
	index := step(nodes)
	larger := step(min(nodes, math.MaxInt/2) * 2)
	if limit.Cmp(resource.MustParse(steps[larger].limit)) >= 0 {
		index = larger
	}
	return resource.MustParse(steps[index].request), resource.MustParse(steps[index].limit)
}

func step(nodes int) int {
	for i := range steps {
		if nodes <= steps[i].nodes {
			return i
		}
	}
	return len(steps) - 1
}
