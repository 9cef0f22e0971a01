// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestConfigFile(t *testing.T) {
	t.Run("When the file is missing, it should write what the CNI plugins expect", func(t *testing.T) {
		g := NewWithT(t)
		file := ConfigFile{Path: filepath.Join(t.TempDir(), "net.d", "10-hypershift.conflist")}
		g.Expect(file.Ensure(CNI{PodNetworks: prefixes("10.0.1.0/24", "fd00:1::/64"), MTU: 1450})).To(Succeed())
		content, err := os.ReadFile(file.Path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(content).To(MatchJSON(`{
			"cniVersion": "1.0.0", "name": "hypershift",
			"plugins": [
				{"type": "ptp", "ipMasq": false, "mtu": 1450, "ipam": {
					"type": "host-local",
					"ranges": [[{"subnet": "10.0.1.0/24"}], [{"subnet": "fd00:1::/64"}]],
					"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
				}},
				{"type": "portmap", "capabilities": {"portMappings": true}}
			]}`))
	})
	t.Run("When the MTU is unknown, it should leave the MTU to the kernel", func(t *testing.T) {
		g := NewWithT(t)
		content, err := CNI{PodNetworks: prefixes("10.0.1.0/24")}.conflist()
		g.Expect(err).NotTo(HaveOccurred())
		var parsed struct{ Plugins []map[string]any }
		g.Expect(json.Unmarshal(content, &parsed)).To(Succeed())
		g.Expect(parsed.Plugins[0]).NotTo(HaveKey("mtu"))
	})
	t.Run("When the file is up to date, it should not be written again", func(t *testing.T) {
		g := NewWithT(t)
		file := ConfigFile{Path: filepath.Join(t.TempDir(), "10-hypershift.conflist")}
		cni := CNI{PodNetworks: prefixes("10.0.1.0/24")}
		g.Expect(file.Ensure(cni)).To(Succeed())
		old := time.Unix(1000, 0)
		g.Expect(os.Chtimes(file.Path, old, old)).To(Succeed())
		g.Expect(file.Ensure(cni)).To(Succeed())
		info, err := os.Stat(file.Path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.ModTime()).To(BeTemporally("==", old))
	})
	t.Run("When the file has other content, it should be replaced and leave no temporary file", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		file := ConfigFile{Path: filepath.Join(dir, "10-hypershift.conflist")}
		g.Expect(os.WriteFile(file.Path, []byte("old"), 0o600)).To(Succeed())
		g.Expect(file.Ensure(CNI{PodNetworks: prefixes("10.0.1.0/24")})).To(Succeed())
		entries, err := os.ReadDir(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1))
	})
	t.Run("When the file cannot be written, it should return an error that names the path", func(t *testing.T) {
		g := NewWithT(t)
		blocked := filepath.Join(t.TempDir(), "blocked")
		g.Expect(os.WriteFile(blocked, nil, 0o600)).To(Succeed())
		g.Expect(ConfigFile{Path: filepath.Join(blocked, "x")}.Ensure(CNI{})).To(MatchError(ContainSubstring(blocked)))
	})
}

func TestInstallPlugins(t *testing.T) {
	image := func(t *testing.T, content string) string {
		dir := t.TempDir()
		NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, "ptp"), []byte(content), 0o755)).To(Succeed())
		return dir
	}
	t.Run("When the host has no plugin, it should install an executable", func(t *testing.T) {
		g := NewWithT(t)
		target := filepath.Join(t.TempDir(), "opt/cni/bin")
		g.Expect(InstallPlugins(image(t, "new"), target)).To(Succeed())
		info, err := os.Stat(filepath.Join(target, "ptp"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o755)))
	})
	t.Run("When the host has an older plugin, it should replace the file and not write into it", func(t *testing.T) {
		g := NewWithT(t)
		target := t.TempDir()
		plugin := filepath.Join(target, "ptp")
		g.Expect(os.WriteFile(plugin, []byte("old"), 0o755)).To(Succeed())
		running, err := os.Open(plugin)
		g.Expect(err).NotTo(HaveOccurred())
		defer running.Close()
		g.Expect(InstallPlugins(image(t, "new"), target)).To(Succeed())
		seen := make([]byte, 3)
		_, err = running.Read(seen)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(seen)).To(Equal("old"))
		g.Expect(os.ReadFile(plugin)).To(Equal([]byte("new")))
	})
	t.Run("When a plugin lost its execute permission, it should be restored", func(t *testing.T) {
		g := NewWithT(t)
		target := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(target, "ptp"), []byte("new"), 0o600)).To(Succeed())
		g.Expect(InstallPlugins(image(t, "new"), target)).To(Succeed())
		info, err := os.Stat(filepath.Join(target, "ptp"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o755)))
	})
	t.Run("When other plugins are on the host, it should keep them", func(t *testing.T) {
		g := NewWithT(t)
		target := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(target, "calico"), []byte("theirs"), 0o755)).To(Succeed())
		g.Expect(InstallPlugins(image(t, "new"), target)).To(Succeed())
		g.Expect(os.ReadFile(filepath.Join(target, "calico"))).To(Equal([]byte("theirs")))
	})
	t.Run("When the image has no plugins, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(InstallPlugins(filepath.Join(t.TempDir(), "none"), t.TempDir())).To(MatchError(ContainSubstring("reading the CNI plugins of the image")))
	})
}
