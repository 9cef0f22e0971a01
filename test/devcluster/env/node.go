// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"path/filepath"
)

// MaxNodes is the maximum number of nodes of the management cluster: the number of addresses that MAAS does not use.
const MaxNodes = 9

// Node is a machine of the management cluster. The first one also runs etcd, the control plane, the registry and MAAS,
// and has the bridge that all machines are connected to.
type Node struct {
	// Number counts from 1.
	Number int
	// Name is the name of the Node and of the host.
	Name string
	// Namespace is the name of the machine and of its network namespace.
	Namespace string
	// Address is its address on the Bridge.
	Address string
	// Zone is the zone of the Node; empty for a single node.
	Zone string
}

// Nodes returns the nodes of a management cluster with count nodes.
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

// First reports whether n is the node with the control plane.
func (n Node) First() bool { return n.Number == 1 }

// Pods returns the node's part of PodNetwork.
func (n Node) Pods() string { return n.pod(0) + "/24" }

// PodGateway returns the node's own address in Pods.
func (n Node) PodGateway() string { return n.pod(1) }

// FirstPod returns the first address of the node's pods.
func (n Node) FirstPod() string { return n.pod(2) }

// LastPod returns the last address of the node's pods.
func (n Node) LastPod() string { return n.pod(254) }

func (n Node) pod(host int) string { return fmt.Sprintf("10.200.%d.%d", n.Number-1, host) }

// Node returns the folder of a machine of the management cluster.
func (e Env) Node(n Node) string {
	if n.First() {
		return e.Management()
	}
	return filepath.Join(e.Dir, n.Name)
}
