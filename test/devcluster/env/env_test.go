// SPDX-License-Identifier: Apache-2.0

package env

import (
	"net/netip"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNew(t *testing.T) {
	t.Run("When nothing is set, it should use the default folder and the program's own folder", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv(DirVariable, "")
		e, err := New("", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e.Dir).To(Equal(DefaultDir))
		g.Expect(e.Bin).To(BeADirectory())
	})
	t.Run("When the variable is set, it should override the default, and a flag should override both", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv(DirVariable, "/from/variable")
		e, err := New("", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e.Dir).To(Equal("/from/variable"))
		e, err = New("/from/flag", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e.Dir).To(Equal("/from/flag"))
	})
	t.Run("When a path is relative, it should be made absolute", func(t *testing.T) {
		g := NewWithT(t)
		e, err := New("dir", "bin")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(filepath.IsAbs(e.Dir)).To(BeTrue())
		g.Expect(filepath.IsAbs(e.Bin)).To(BeTrue())
	})
}

func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	machines := netip.MustParsePrefix(Network)
	for _, address := range []string{Gateway, Host} {
		g.Expect(machines.Contains(netip.MustParseAddr(address))).To(BeTrue())
	}
	pods, services := netip.MustParsePrefix(PodNetwork), netip.MustParsePrefix(ServiceNetwork)
	for _, address := range []string{APIServiceIP, DNSServiceIP} {
		g.Expect(services.Contains(netip.MustParseAddr(address))).To(BeTrue())
	}
	g.Expect(pods.Overlaps(services) || pods.Overlaps(machines) || services.Overlaps(machines)).To(BeFalse())
	for _, name := range []string{HostLink, HostLinkPeer, Bridge} {
		g.Expect(len(name)).To(BeNumerically("<", 16), "the kernel's limit for interface names")
	}
}
