// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnnouncements(t *testing.T) {
	hardware := net.HardwareAddr{0x02, 0, 0, 0, 0, 0x05}
	for _, tt := range []struct {
		name, address string
		want          []string
	}{
		{
			"When the address is IPv4, it should announce it by an ARP request and an ARP reply", "10.0.0.5",
			[]string{
				"ffffffffffff 020000000005 0806 0001 0800 06 04 0001 020000000005 0a000005 ffffffffffff 0a000005",
				"ffffffffffff 020000000005 0806 0001 0800 06 04 0002 020000000005 0a000005 ffffffffffff 0a000005",
			},
		},
		{
			// Another program computed the checksum: with it, all words sum up to ffff.
			"When the address is IPv6, it should announce it by a neighbor advertisement with the override flag", "2001:db8::5",
			[]string{
				"333300000001 020000000005 86dd 60000000 0020 3a ff 20010db8000000000000000000000005 ff020000000000000000000000000001" +
					" 88 00 f91e 20000000 20010db8000000000000000000000005 02 01 020000000005",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got, want []string
			for _, frame := range announcements(netip.MustParseAddr(tt.address), hardware) {
				got = append(got, hex.EncodeToString(frame))
			}
			for _, frame := range tt.want {
				want = append(want, strings.ReplaceAll(frame, " ", ""))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChecksums verifies checksums as a receiver does. A receiver drops an advertisement whose sum is not ffff, and its
// clients still use the previous node.
func TestChecksums(t *testing.T) {
	for _, address := range []string{"2001:db8::5", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe80::ffff:ffff:ffff:fffe", "fd00:8000:8000:8000:8000:8000:8000:8000", "::ffff:1"} {
		for _, hardware := range []net.HardwareAddr{{0, 0, 0, 0, 0, 0}, {0x02, 0, 0, 0, 0, 0x05}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x80, 0, 0x80, 0, 0x80, 0}} {
			frame := announcements(netip.MustParseAddr(address), hardware)[0]
			// The message follows 14 bytes of Ethernet and 40 bytes of IPv6 header; the addresses are the last 32 bytes
			// of the IPv6 header.
			sum := uint32(len(frame)-54) + 58
			for i := 22; i < len(frame); i += 2 {
				sum += uint32(frame[i])<<8 | uint32(frame[i+1])
			}
			for sum > 0xffff {
				sum = sum>>16 + sum&0xffff
			}
			if sum != 0xffff {
				t.Errorf("the advertisement of %s by %s sums up to %x", address, hardware, sum)
			}
		}
	}
}
