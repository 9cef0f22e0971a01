// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Values of the frame fields, from IEEE 802, RFC 826 and RFC 4861.
const (
	hardwareLength = 6

	etherARP  = 0x0806
	etherIPv6 = 0x86dd

	arpRequest = 1
	arpReply   = 2

	protocolICMPv6        = 58
	neighborAdvertisement = 136
	flagOverride          = 0x20
	optionTargetLinkLayer = 2
	// advertisementLength is the length in bytes of a message with its one option.
	advertisementLength = 32
	// neighborHops is the hop limit that proves that a message originates on the same segment.
	neighborHops = 255
)

var (
	everybody = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	// allNodes is ff02::1; allNodesHardware is its Ethernet multicast address.
	allNodes         = netip.MustParseAddr("ff02::1")
	allNodesHardware = net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}
)

// announcements returns the frames that announce the new location of an address on a segment. For IPv4 these are
// gratuitous ARPs in both forms, because some hosts accept only one of them. For IPv6 it is an unsolicited neighbor
// advertisement.
func announcements(address netip.Addr, hardware net.HardwareAddr) [][]byte {
	if address.Is4() {
		return [][]byte{arp(arpRequest, address, hardware), arp(arpReply, address, hardware)}
	}
	return [][]byte{advertisement(address, hardware)}
}

func ethernet(to, from net.HardwareAddr, kind uint16) []byte {
	frame := append(append([]byte{}, to...), from...)
	return binary.BigEndian.AppendUint16(frame, kind)
}

func arp(operation uint16, address netip.Addr, hardware net.HardwareAddr) []byte {
	frame := ethernet(everybody, hardware, etherARP)
	// The hardware type is Ethernet with 6-byte addresses, the protocol IPv4 with 4-byte addresses.
	frame = append(frame, 0, 1, 0x08, 0x00, 6, 4)
	frame = binary.BigEndian.AppendUint16(frame, operation)
	frame = append(append(frame, hardware...), address.AsSlice()...)
	return append(append(frame, everybody...), address.AsSlice()...)
}

func advertisement(address netip.Addr, hardware net.HardwareAddr) []byte {
	message := append([]byte{neighborAdvertisement, 0, 0, 0, flagOverride, 0, 0, 0}, address.AsSlice()...)
	// An option's length is in units of 8 bytes.
	message = append(append(message, optionTargetLinkLayer, 1), hardware...)
	binary.BigEndian.PutUint16(message[2:], checksum(address, allNodes, message))

	frame := ethernet(allNodesHardware, hardware, etherIPv6)
	frame = append(frame, 0x60, 0, 0, 0)
	frame = append(frame, 0, advertisementLength, protocolICMPv6, neighborHops)
	frame = append(append(frame, address.AsSlice()...), allNodes.AsSlice()...)
	return append(frame, message...)
}

// checksum returns the checksum of an ICMPv6 message. It includes a pseudo-header of addresses, length and protocol,
// which is not sent.
func checksum(from, to netip.Addr, message []byte) uint16 {
	sum := uint16(advertisementLength) + protocolICMPv6
	for _, part := range [][]byte{from.AsSlice(), to.AsSlice(), message} {
		for i := 0; i+1 < len(part); i += 2 {
			word := binary.BigEndian.Uint16(part[i:])
			// Add the carry back (one's complement sum).
			if sum += word; sum < word {
				sum++
			}
		}
	}
	return ^sum
}
