// SPDX-License-Identifier: Apache-2.0

// Package network makes the network namespaces, bridges and veth pairs of machines. Everything is made if it is missing,
// left alone if it is there, and goes with its namespace.
package network

// Config is what a machine's network namespace holds, besides the loopback device.
type Config struct {
	// Bridges are made first, so that Links can use them.
	Bridges []Bridge `json:"bridges,omitempty"`
	Links   []Link   `json:"links,omitempty"`
}

// Bridge is a switch in the machine's namespace.
type Bridge struct {
	// Name is the interface, at most 15 bytes.
	Name string `json:"name"`
	// Address is the machine's own address on the bridge with its prefix length, such as "172.30.240.1/24".
	Address string `json:"address,omitempty"`
}

// Link is a cable (veth pair) between a machine and another network namespace.
type Link struct {
	// Inside is the end in the machine.
	Inside End `json:"inside"`
	// Outside is the other end.
	Outside End `json:"outside"`
}

// End is one interface of a Link.
type End struct {
	// Namespace is the named network namespace that holds the interface; empty: that of the caller. Ignored for Inside.
	Namespace string `json:"namespace,omitempty"`
	// Name is the interface, at most 15 bytes.
	Name string `json:"name"`
	// MAC is chosen by the kernel if empty.
	MAC string `json:"mac,omitempty"`
	// Bridge is plugged into if set; it must be in the same namespace.
	Bridge string `json:"bridge,omitempty"`
	// Address with its prefix length, such as "172.30.240.11/24".
	Address string `json:"address,omitempty"`
	// Gateway is the default route if set.
	Gateway string `json:"gateway,omitempty"`
	// MTU in bytes; zero: the kernel's choice.
	MTU int `json:"mtu,omitempty"`
}
