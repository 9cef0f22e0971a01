// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestWriteOwn(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(writeOwn(root)).To(Succeed())
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, ownDir, name))
		g.Expect(err).NotTo(HaveOccurred())
		return string(data)
	}
	first := read("boot-id")
	g.Expect(first).To(MatchRegexp(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`))
	g.Expect(read("swaps")).To(HavePrefix("Filename"))
	g.Expect(read("cmdline")).To(HavePrefix("BOOT_IMAGE="))
	g.Expect(writeOwn(root)).To(Succeed())
	g.Expect(read("boot-id")).NotTo(Equal(first), "each boot has its own")
}

func TestLater(t *testing.T) {
	for name, test := range map[string]struct{ before, now, want []string }{
		"nothing was mounted":          {[]string{"/", "/run"}, []string{"/", "/run"}, nil},
		"mounts were added":            {[]string{"/", "/run"}, []string{"/", "/run", "/mnt", "/mnt/a"}, []string{"/mnt/a", "/mnt"}},
		"mounts were removed":          {[]string{"/", "/run"}, []string{"/"}, nil},
		"one was mounted over another": {[]string{"/", "/mnt"}, []string{"/", "/mnt", "/mnt", "/mnt"}, []string{"/mnt", "/mnt"}},
	} {
		t.Run("When "+name+", later should return the new mounts, last first", func(t *testing.T) {
			if diff := cmp.Diff(test.want, later(test.before, test.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClearRun(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for _, name := range []string{"machine/tools", "lock/x", "network/ifstate", "cloud-init"} {
		g.Expect(os.MkdirAll(filepath.Join(dir, name), 0o755)).To(Succeed())
	}
	g.Expect(clearRun(dir)).To(Succeed())
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(ConsistOf(filepath.Join(dir, "machine"), filepath.Join(dir, "lock")))
}

func TestSystemIsValidated(t *testing.T) {
	g := NewWithT(t)
	config := Config{Name: "x", Dir: "/x", System: "os"}
	g.Expect(config.validate()).To(MatchError(ContainSubstring(`system "os": must be an absolute path`)))
	config.System = "/os"
	g.Expect(config.validate()).To(Succeed())
	g.Expect(config.withDefaults().Env).To(ConsistOf("PATH=" + systemPath))
	config.System = ""
	g.Expect(config.withDefaults().Env).To(ConsistOf("PATH=" + DefaultPath))
}
