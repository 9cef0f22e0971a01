// SPDX-License-Identifier: Apache-2.0

package frame_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/tunnel/frame"
)

func TestMessages(t *testing.T) {
	g, wire := NewWithT(t), &bytes.Buffer{}
	sent := frame.Agent{Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}, Draining: true}
	g.Expect(frame.Write(wire, sent)).To(Succeed())
	wire.WriteString("bytes of the connection")
	received := frame.Agent{}
	g.Expect(frame.Read(wire, &received)).To(Succeed())
	g.Expect(received).To(Equal(sent))
	g.Expect(wire.String()).To(Equal("bytes of the connection"))
	long := frame.Response{Error: strings.Repeat("x", 70_000)}
	g.Expect(frame.Write(wire, long)).To(MatchError(ContainSubstring("at most 65536")))
}

// FuzzRead checks that no bytes of a peer make this end stop, or take more memory than a message may have.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte("\xff\xff\xff\xff{}"))
	f.Add([]byte("\x00\x00\x00\x1b" + `{"networks":["10.0.0.0/8"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		said := frame.Agent{}
		if err := frame.Read(bytes.NewReader(raw), &said); err != nil {
			return
		}
		for _, network := range said.Networks {
			network.Contains(netip.MustParseAddr("10.0.0.1"))
		}
	})
}

// FuzzDestination checks that no spelling of an address leads to the host itself.
func FuzzDestination(f *testing.F) {
	for _, address := range []string{"10.0.0.1:443", "127.0.0.1:80", "[::ffff:7f00:1]:80", "[fe80::1%eth0]:80", "[::1]:1"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		destination, err := frame.Destination(address)
		if err != nil {
			return
		}
		ip := destination.Addr()
		if ip.Is4In6() || ip.Zone() != "" || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() {
			t.Errorf("%q leads to %s", address, destination)
		}
	})
}
