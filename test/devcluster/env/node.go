// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"path/filepath"
)

// MaxNodes is how many nodes the management cluster can have: as many addresses as MAAS leaves alone.
const MaxNodes = 9

// Node is a machine of the management cluster. The first one is also etcd and the control plane, and has the registry, MAAS and the
// bridge that all machines are plugged into.
type Node struct {
	// Number counts from 1.
	Number int
	// Name is that of the Node and of the host.
	Name string
	// Namespace is the network namespace and the name of the machine.
	Namespace string
	// Address is that on the Bridge.
	Address string
	// Zone is the Node's; empty where it is the only one.
	Zone string
}

// Nodes are the nodes of a management cluster of so many.
func Nodes(count int) []Node {
	nodes := []Node{{Number: 1, Name: "management", Namespace: Namespace, Address: Gateway}}
	for number := 2; number <= count; number++ {
		nodes = append(nodes, Node{
			Number: number, Name: fmt.Sprintf("management-%d", number), Namespace: fmt.Sprintf("%s%d", Namespace, number),
			Address: fmt.Sprintf("172.30.240.%d", number),
		})
	}
	if count > 1 {
		for i := range nodes {
			nodes[i].Zone = fmt.Sprintf("zone-%d", nodes[i].Number)
		}
	}
	return nodes
}

// First tells whether it is the node with the control plane.
func (n Node) First() bool { return n.Number == 1 }

// Pods is the part of PodNetwork that the node's pods are in.
func (n Node) Pods() string { return n.pod(0) + "/24" }

// PodGateway, FirstPod and LastPod are addresses of Pods: that of the node itself, and those between which its pods have theirs.
func (n Node) PodGateway() string { return n.pod(1) }

// FirstPod is described at PodGateway.
func (n Node) FirstPod() string { return n.pod(2) }

// LastPod is described at PodGateway.
func (n Node) LastPod() string { return n.pod(254) }

func (n Node) pod(host int) string { return fmt.Sprintf("10.200.%d.%d", n.Number-1, host) }

// Node is the folder of a machine of the management cluster.
func (e Env) Node(n Node) string {
	if n.First() {
		return e.Management()
	}
	return filepath.Join(e.Dir, n.Name)
}
