// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/nftables/expr"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// names returns the names of the files in a folder.
func names(g *GomegaWithT, folder string) []string {
	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// TestConfigFileInBadTimes checks that a failed write leaves no partial file: pods start once the file exists.
func TestConfigFileInBadTimes(t *testing.T) {
	t.Parallel()
	cni := CNI{PodNetworks: prefixes("10.0.1.0/24")}
	t.Run("When a partial file is left, it should be overwritten and the result readable by all users", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		file := ConfigFile{Path: filepath.Join(dir, "10-hypershift.conflist")}
		g.Expect(os.WriteFile(filepath.Join(dir, ".10-hypershift.conflist.new"), []byte("{ half of one that is longer than the next"), 0o600)).To(Succeed())
		g.Expect(file.Ensure(cni)).To(Succeed())
		g.Expect(names(g, dir)).To(Equal([]string{"10-hypershift.conflist"}))
		want, err := cni.conflist()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.ReadFile(file.Path)).To(Equal(want))
		info, err := os.Stat(file.Path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o644)))
	})
	t.Run("When the directory is new, it should be readable by all users", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(ConfigFile{Path: filepath.Join(dir, "cni/net.d/x.conflist")}.Ensure(cni)).To(Succeed())
		for _, folder := range []string{"cni", "cni/net.d"} {
			info, err := os.Stat(filepath.Join(dir, folder))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o755)))
		}
	})
	t.Run("When a directory is at the path of the file, it should return an error and keep the directory", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(os.MkdirAll(filepath.Join(dir, "x.conflist/theirs"), 0o755)).To(Succeed())
		g.Expect(ConfigFile{Path: filepath.Join(dir, "x.conflist")}.Ensure(cni)).To(MatchError(HavePrefix("reading the CNI configuration: ")))
		g.Expect(filepath.Join(dir, "x.conflist/theirs")).To(BeADirectory())
	})
	t.Run("When the file cannot be written, it should return an error and leave no file", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(os.MkdirAll(filepath.Join(dir, ".x.conflist.new/in-the-way"), 0o755)).To(Succeed())
		g.Expect(ConfigFile{Path: filepath.Join(dir, "x.conflist")}.Ensure(cni)).To(MatchError(HavePrefix("writing the CNI configuration: ")))
		g.Expect(filepath.Join(dir, "x.conflist")).NotTo(BeAnExistingFile())
	})
}

func TestInstallPluginsInBadTimes(t *testing.T) {
	t.Parallel()
	// imaged returns the folder of an image with two plugins.
	imaged := func(t *testing.T) string {
		from := t.TempDir()
		for _, name := range []string{"bridge", "ptp"} {
			NewWithT(t).Expect(os.WriteFile(filepath.Join(from, name), []byte(name), 0o755)).To(Succeed())
		}
		return from
	}
	t.Run("When a partial plugin is left, it should install the complete plugin and leave no temporary file", func(t *testing.T) {
		g, to := NewWithT(t), t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(to, ".ptp.new"), []byte("pt"), 0o600)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(to, "bridge"), nil, 0o755)).To(Succeed())
		g.Expect(InstallPlugins(imaged(t), to)).To(Succeed())
		g.Expect(names(g, to)).To(Equal([]string{"bridge", "ptp"}))
		g.Expect(os.ReadFile(filepath.Join(to, "bridge"))).To(BeEquivalentTo("bridge"))
		for _, name := range names(g, to) {
			info, err := os.Stat(filepath.Join(to, name))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o755)), "the container runtime runs it")
		}
	})
	for name, harm := range map[string]func(from, to string) error{
		"a plugin cannot be written":             func(_, to string) error { return os.MkdirAll(filepath.Join(to, ".ptp.new/x"), 0o755) },
		"a directory is at the path of a plugin": func(_, to string) error { return os.MkdirAll(filepath.Join(to, "ptp/x"), 0o755) },
		"a plugin in the image is a directory": func(from, _ string) error {
			return errors.Join(os.Remove(filepath.Join(from, "ptp")), os.Mkdir(filepath.Join(from, "ptp"), 0o755))
		},
	} {
		t.Run("When "+name+", it should name the plugin and install the others", func(t *testing.T) {
			g, from, to := NewWithT(t), imaged(t), t.TempDir()
			g.Expect(harm(from, to)).To(Succeed())
			g.Expect(InstallPlugins(from, to)).To(MatchError(HavePrefix("installing CNI plugin ptp: ")))
			g.Expect(os.ReadFile(filepath.Join(to, "bridge"))).To(BeEquivalentTo("bridge"))
		})
	}
	t.Run("When the plugin directory of the host cannot be created, it should return an error", func(t *testing.T) {
		g, blocked := NewWithT(t), filepath.Join(t.TempDir(), "blocked")
		g.Expect(os.WriteFile(blocked, nil, 0o600)).To(Succeed())
		g.Expect(InstallPlugins(imaged(t), filepath.Join(blocked, "bin"))).To(MatchError(HavePrefix("installing CNI plugin bridge: ")))
	})
}

// TestFromKernel checks which routes with the agent's protocol number count as its own. Some of the others can only
// come from another program.
func TestFromKernel(t *testing.T) {
	t.Parallel()
	network := func(text string) *net.IPNet {
		_, n, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, tt := range map[string]struct {
		found netlink.Route
		want  string
	}{
		"it has a gateway and a pod network":           {netlink.Route{Dst: network("10.0.2.0/24"), Gw: net.ParseIP("192.0.2.2")}, "10.0.2.0/24 192.0.2.2"},
		"the addresses are IPv4-mapped IPv6 addresses": {netlink.Route{Dst: &net.IPNet{IP: net.ParseIP("10.0.2.0").To16(), Mask: net.CIDRMask(24, 32)}, Gw: net.ParseIP("192.0.2.2").To16()}, "10.0.2.0/24 192.0.2.2"},
		"it is an IPv6 route":                          {netlink.Route{Dst: network("fd00:2::/64"), Gw: net.ParseIP("2001:db8::2")}, "fd00:2::/64 2001:db8::2"},
		"it is the default route":                      {netlink.Route{Gw: net.ParseIP("192.0.2.1")}, ""},
		"it has no gateway":                            {netlink.Route{Dst: network("10.0.2.0/24")}, ""},
	} {
		t.Run("When a route has the agent's protocol number and "+name+", it should be used or ignored", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got, own := fromKernel(tt.found)
			g.Expect(own).To(Equal(tt.want != ""))
			if own {
				g.Expect(got.To.String() + " " + got.Via.String()).To(Equal(tt.want))
				again, own := fromKernel(*got.toKernel())
				g.Expect(own).To(BeTrue())
				g.Expect(again).To(Equal(got), "what is made is found as what it was")
				g.Expect(got.toKernel().Table).To(Equal(unix.RT_TABLE_MAIN))
			}
		})
	}
}

// TestMasqueradeForgets checks that rules are written again if they could not be read back.
func TestMasqueradeForgets(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	k := &deaf{kernel: kernel{}}
	m := &Masquerade{Filter: k}
	pods, cluster := prefixes("10.0.1.0/24"), prefixes("10.0.0.0/16")
	k.deaf = errors.New("interrupted")
	g.Expect(m.Ensure(pods, cluster)).To(MatchError(And(HavePrefix("reading the packet filter table "+tableName), ContainSubstring("interrupted"))))
	k.deaf = nil
	g.Expect(m.Ensure(pods, cluster)).To(Succeed())
	g.Expect(k.written).To(HaveLen(2))
	k.deaf = errors.New("interrupted")
	g.Expect(m.Ensure(pods, cluster)).NotTo(Succeed())
	g.Expect(k.written).To(HaveLen(3), "what cannot be seen is written again")
}

// deaf is a kernel that accepts rules but may fail to return them.
type deaf struct {
	kernel
	deaf error
}

func (d *deaf) Read() (string, error) {
	if d.deaf != nil {
		return "", d.deaf
	}
	return d.kernel.Read()
}

// TestExpressions evaluates the comparisons of the kernel with a packet header of each family.
func TestExpressions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule            Rule
		passes, stays   [2]string
		wantExpressions int
	}{
		"to the cluster":     {Rule{From: netip.MustParsePrefix("10.0.1.0/25"), To: netip.MustParsePrefix("10.0.0.0/14")}, [2]string{"10.0.1.127", "10.3.255.255"}, [2]string{"10.0.1.127", "10.4.0.0"}, 9},
		"out of the cluster": {Rule{From: netip.MustParsePrefix("fd00:1::/65"), Masquerade: true}, [2]string{"fd00:1::7fff:ffff:ffff:ffff", "2001:db8::1"}, [2]string{"fd00:1:0:0:8000::", "2001:db8::1"}, 6},
	} {
		t.Run("When a packet goes "+name+", the rule should match exactly its networks", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(tt.rule.expressions()).To(HaveLen(tt.wantExpressions))
			g.Expect(matches(t, tt.rule, tt.passes)).To(BeTrue())
			g.Expect(matches(t, tt.rule, tt.stays)).To(BeFalse())
		})
	}
}

// matches reports whether a rule matches a packet between two addresses. It evaluates the rule as the kernel does.
func matches(t *testing.T, rule Rule, packet [2]string) bool {
	t.Helper()
	from, to := netip.MustParseAddr(packet[0]), netip.MustParseAddr(packet[1])
	f := familyOf(rule.From)
	header := make([]byte, 40)
	copy(header[f.source:], from.AsSlice())
	copy(header[f.destination:], to.AsSlice())
	var value []byte
	for _, expression := range rule.expressions() {
		switch e := expression.(type) {
		case *expr.Meta:
			value = []byte{unix.NFPROTO_IPV6}
			if from.Is4() {
				value = []byte{unix.NFPROTO_IPV4}
			}
		case *expr.Payload:
			value = slices.Clone(header[e.Offset : e.Offset+e.Len])
		case *expr.Bitwise:
			for i := range value {
				value[i] = value[i]&e.Mask[i] ^ e.Xor[i]
			}
		case *expr.Cmp:
			if !bytes.Equal(value, e.Data) {
				return false
			}
		}
	}
	return true
}
