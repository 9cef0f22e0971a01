// SPDX-License-Identifier: Apache-2.0

// Package network creates the network namespaces, bridges and veth pairs of machines. It creates what is missing, does
// not change what exists, and everything is removed with its namespace.
package network

// Config describes a machine's network namespace, in addition to the loopback device.
type Config struct {
	// Bridges are created first, so that Links can use them.
	Bridges []Bridge `json:"bridges,omitempty"`
	Links   []Link   `json:"links,omitempty"`
}

// Bridge is a switch in the machine's namespace.
type Bridge struct {
	// Name is the interface name, at most 15 bytes.
	Name string `json:"name"`
	// Address is the machine's address on the bridge with its prefix length, such as "172.30.240.1/24".
	Address string `json:"address,omitempty"`
}

// Link is a veth pair between a machine and another network namespace.
type Link struct {
	// Inside is the end in the machine.
	Inside End `json:"inside"`
	// Outside is the other end.
	Outside End `json:"outside"`
}

// End is one interface of a Link.
type End struct {
	// Namespace is the named network namespace of the interface; empty means the caller's. It is ignored for Inside.
	Namespace string `json:"namespace,omitempty"`
	// Name is the interface name, at most 15 bytes.
	Name string `json:"name"`
	// MAC is the MAC address; if empty, the kernel chooses it.
	MAC string `json:"mac,omitempty"`
	// Bridge is the bridge to connect to, in the same namespace; empty for none.
	Bridge string `json:"bridge,omitempty"`
	// Address is the address with its prefix length, such as "172.30.240.11/24".
	Address string `json:"address,omitempty"`
	// Gateway is the default route; empty for none.
	Gateway string `json:"gateway,omitempty"`
	// MTU is in bytes; zero means the kernel's default.
	MTU int `json:"mtu,omitempty"`
}
