// SPDX-License-Identifier: Apache-2.0

// Package frame is the protocol between the two ends of the tunnel. A server runs beside each API server, and an agent
// on each node. The agent dials the server with mutual TLS. The connection carries multiplexed streams: the agent opens
// one control stream, and the server opens one stream for each connection into the cluster network.
package frame

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// maxMessage is the maximum size of a message in bytes.
const maxMessage = 64 << 10

// Agent is what an agent reports on its control stream, first when it connects and then after each change.
type Agent struct {
	// Networks are the networks whose addresses are on the agent's node: its own addresses, and those of its pods.
	Networks []netip.Prefix `json:"networks,omitempty"`
	// Draining reports that the agent ends soon.
	Draining bool `json:"draining,omitempty"`
}

// Server is what a server reports on the control stream, first when an agent connects and then after each change.
type Server struct {
	// ID identifies the server in the cluster.
	ID string `json:"id"`
	// Servers is the number of servers to which an agent should connect.
	Servers int `json:"servers"`
	// Draining reports that the server ends soon.
	Draining bool `json:"draining,omitempty"`
}

// Request is the first message of a stream that the server opens.
type Request struct {
	// Address is the destination as IP:port.
	Address string `json:"address"`
}

// Response is the agent's answer to a Request. The bytes of the connection follow if Error is empty.
type Response struct {
	// Error is why the destination was not reached; empty if it was.
	Error string `json:"error,omitempty"`
}

// Write sends a message.
func Write(w io.Writer, message any) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encoding a %T for the tunnel: %w", message, err)
	}
	if len(raw) > maxMessage {
		return fmt.Errorf("sending a %T through the tunnel: it has %d bytes, and at most %d are allowed",
			message, len(raw), maxMessage)
	}
	//nolint:gosec // The length is at most maxMessage.
	framed := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(raw)), uint32(len(raw)))
	if _, err := w.Write(append(framed, raw...)); err != nil {
		return fmt.Errorf("sending a %T through the tunnel: %w", message, err)
	}
	return nil
}

// Read receives a message. It reads no byte after the message.
func Read(r io.Reader, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("receiving a %T from the tunnel: %w", message, err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessage {
		return fmt.Errorf("receiving a %T from the tunnel: it has %d bytes, and at most %d are allowed",
			message, size, maxMessage)
	}
	raw := make([]byte, size)
	if _, err := io.ReadFull(r, raw); err != nil {
		return fmt.Errorf("receiving a %T from the tunnel: %w", message, err)
	}
	if err := json.Unmarshal(raw, message); err != nil {
		return fmt.Errorf("decoding a %T from the tunnel: %w", message, err)
	}
	return nil
}

// ErrForbidden is the error of Destination for addresses that a node must not be asked to reach.
var ErrForbidden = errors.New("the tunnel does not connect to it")

// metadata is the metadata service of clouds that has no link-local address.
var metadata = netip.MustParseAddr("fd00:ec2::254")

// Destination parses the IP:port of a destination. It returns ErrForbidden for addresses of the host itself and of its
// link: users of the API choose destinations, and services that listen there trust every process of the host.
func Destination(address string) (netip.AddrPort, error) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("destination %q is not an IP address with a port", address)
	}
	ip := parsed.Addr().Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip == metadata ||
		ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) || parsed.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("destination %s: %w", address, ErrForbidden)
	}
	return netip.AddrPortFrom(ip, parsed.Port()), nil
}
