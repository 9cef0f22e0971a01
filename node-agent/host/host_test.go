// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host"
)

// newHost returns a host in a temporary directory, and the list of files that it has changed.
func newHost(t *testing.T) (*GomegaWithT, *host.Host, *[]string) {
	t.Helper()
	changed := &[]string{}
	return NewWithT(t), &host.Host{Root: t.TempDir(), Log: &strings.Builder{}, Changed: func(path string) { *changed = append(*changed, path) }}, changed
}

// there returns the names in a directory.
func there(g *GomegaWithT, h *host.Host, folder string) []string {
	entries, err := os.ReadDir(h.Path(folder))
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestWrite(t *testing.T) {
	t.Parallel()
	const path = "/etc/app/f"
	t.Run("When a file is new, it should have its content and mode and leave no temporary file", func(t *testing.T) {
		g, h, changed := newHost(t)
		g.Expect(h.Write(path, []byte("one"), 0o666)).To(BeTrue())
		g.Expect(h.Read(path)).To(BeEquivalentTo("one"))
		info, err := os.Stat(h.Path(path))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode()).To(Equal(fs.FileMode(0o666)))
		g.Expect(there(g, h, "/etc/app")).To(Equal([]string{"f"}))
		g.Expect(*changed).To(Equal([]string{path}))
	})
	for name, tt := range map[string]struct {
		content string
		mode    fs.FileMode
		want    bool
	}{
		"it is unchanged":                      {"one", 0o644, false},
		"its content differs in the same size": {"two", 0o644, true},
		"its content is longer":                {"one more", 0o644, true},
		"only its mode differs":                {"one", 0o600, true},
	} {
		t.Run("When a file exists and "+name+", it should report whether it changed", func(t *testing.T) {
			g, h, changed := newHost(t)
			g.Expect(h.Write(path, []byte("one"), 0o644)).To(BeTrue())
			before, err := os.Stat(h.Path(path))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(h.Write(path, []byte(tt.content), tt.mode)).To(Equal(tt.want))
			after, err := os.Stat(h.Path(path))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.SameFile(before, after)).To(Equal(!tt.want), "who has the old one open reads the whole of the old one")
			g.Expect(h.Read(path)).To(BeEquivalentTo(tt.content))
			g.Expect(after.Mode()).To(Equal(tt.mode))
			g.Expect(*changed).To(HaveLen(map[bool]int{false: 1, true: 2}[tt.want]))
		})
	}
	t.Run("When a symlink points to the same content, it should replace the symlink and keep the target", func(t *testing.T) {
		g, h, _ := newHost(t)
		g.Expect(h.Write("/etc/app/other", []byte("one"), 0o644)).To(BeTrue())
		g.Expect(h.Link(path, "other")).To(Succeed())
		g.Expect(h.Write(path, []byte("one"), 0o644)).To(BeTrue())
		info, err := os.Lstat(h.Path(path))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().IsRegular()).To(BeTrue())
		g.Expect(h.Read("/etc/app/other")).To(BeEquivalentTo("one"))
	})
	for name, way := range map[string]string{"a folder is at the path": path + "/x", "a file is at the path of its folder": "/etc/app"} {
		t.Run("When "+name+", it should return an error and leave no partial file", func(t *testing.T) {
			g, h, changed := newHost(t)
			g.Expect(h.Write(way, []byte("theirs"), 0o644)).To(BeTrue())
			*changed = nil
			_, err := h.Write(path, []byte("one"), 0o644)
			g.Expect(err).To(HaveOccurred())
			g.Expect(*changed).To(BeEmpty())
			g.Expect(h.Read(way)).To(BeEquivalentTo("theirs"))
			g.Expect(there(g, h, "/etc")).To(Equal([]string{"app"}))
			if way != "/etc/app" {
				g.Expect(there(g, h, "/etc/app")).To(Equal([]string{"f"}))
			}
		})
	}
}

func TestReadAndExists(t *testing.T) {
	t.Parallel()
	g, h, _ := newHost(t)
	g.Expect(h.Write("/etc/empty", nil, 0o644)).To(BeTrue())
	g.Expect(h.Link("/etc/dangling", "nowhere")).To(Succeed())
	t.Run("When a file is missing, it should return nil, unlike for an empty file", func(*testing.T) {
		g.Expect(h.Read("/etc/none")).To(BeNil())
		g.Expect(h.Read("/etc/empty")).To(And(BeEmpty(), Not(BeNil())))
	})
	t.Run("When the path is a directory, it should return an error", func(*testing.T) {
		_, err := h.Read("/etc")
		g.Expect(err).To(HaveOccurred())
	})
	t.Run("When a symlink is dangling, it should exist", func(*testing.T) {
		g.Expect(h.Exists("/etc/dangling")).To(BeTrue())
		g.Expect(h.Exists("/etc/none")).To(BeFalse())
	})
}

func TestRemove(t *testing.T) {
	t.Parallel()
	t.Run("When a file is removed twice, it should succeed and report one change", func(t *testing.T) {
		g, h, changed := newHost(t)
		g.Expect(h.Write("/etc/f", nil, 0o644)).To(BeTrue())
		*changed = nil
		g.Expect(h.Remove("/etc/f")).To(Succeed())
		g.Expect(h.Remove("/etc/f")).To(Succeed())
		g.Expect(*changed).To(Equal([]string{"/etc/f"}))
		g.Expect(h.Remove("/none/f")).To(Succeed())
	})
	t.Run("When the parent is a file, it should remove nothing and succeed", func(t *testing.T) {
		g, h, _ := newHost(t)
		g.Expect(h.Write("/etc/f", nil, 0o644)).To(BeTrue())
		g.Expect(h.Remove("/etc/f/g")).To(Succeed())
		g.Expect(h.Exists("/etc/f")).To(BeTrue())
	})
	t.Run("When a symlink is removed, it should keep the target", func(t *testing.T) {
		g, h, _ := newHost(t)
		g.Expect(h.Write("/etc/f", nil, 0o644)).To(BeTrue())
		g.Expect(h.Link("/etc/l", "f")).To(Succeed())
		g.Expect(h.Remove("/etc/l")).To(Succeed())
		g.Expect(there(g, h, "/etc")).To(Equal([]string{"f"}))
	})
	t.Run("When a directory is not empty, it should return an error and keep the directory", func(t *testing.T) {
		g, h, changed := newHost(t)
		g.Expect(h.Write("/etc/f", nil, 0o644)).To(BeTrue())
		*changed = nil
		g.Expect(h.Remove("/etc")).NotTo(Succeed())
		g.Expect(*changed).To(BeEmpty())
	})
}

func TestLink(t *testing.T) {
	t.Parallel()
	const path = "/opt/node/current"
	t.Run("When a symlink is written again, it should change nothing", func(t *testing.T) {
		g, h, changed := newHost(t)
		for range 2 {
			g.Expect(h.Link(path, "one")).To(Succeed())
			g.Expect(os.Readlink(h.Path(path))).To(Equal("one"))
		}
		g.Expect(*changed).To(Equal([]string{path}))
	})
	t.Run("When the target changes, it should replace the symlink and leave no partial one", func(t *testing.T) {
		g, h, changed := newHost(t)
		g.Expect(h.Link(path, "one")).To(Succeed())
		g.Expect(os.Symlink("half", h.Path(path+".hypershift-partial"))).To(Succeed())
		g.Expect(h.Link(path, "two")).To(Succeed())
		g.Expect(os.Readlink(h.Path(path))).To(Equal("two"))
		g.Expect(there(g, h, "/opt/node")).To(Equal([]string{"current"}))
		g.Expect(*changed).To(HaveLen(2))
	})
	for name, way := range map[string]string{
		"a directory is at its path": path + "/x", "a file is at the path of its folder": "/opt/node", "a folder is at the temporary path": path + ".hypershift-partial/x",
	} {
		t.Run("When "+name+", it should return an error", func(t *testing.T) {
			g, h, changed := newHost(t)
			g.Expect(h.Write(way, nil, 0o644)).To(BeTrue())
			*changed = nil
			g.Expect(h.Link(path, "one")).NotTo(Succeed())
			g.Expect(*changed).To(BeEmpty())
			g.Expect(h.Exists(way)).To(BeTrue())
		})
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	t.Run("When a program succeeds, it should return the output for the given input", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(host.Exec(t.Context(), strings.NewReader("given"), "cat")).To(BeEquivalentTo("given"))
		g.Expect(host.Exec(t.Context(), nil, "cat")).To(BeEmpty(), "who is given nothing waits for nothing")
	})
	t.Run("When a program fails, it should return an error with the command and the end of its output", func(t *testing.T) {
		g := NewWithT(t)
		missing := filepath.Join(t.TempDir(), strings.Repeat("x", 200), strings.Repeat("y", 200), strings.Repeat("z", 200), "end")
		out, err := host.Exec(t.Context(), nil, "cat", missing)
		g.Expect(out).To(BeNil(), "half of what it wrote is not for use")
		g.Expect(err).To(MatchError(And(HavePrefix("cat "+missing+": exit status 1: "), ContainSubstring("/end"))))
		said := strings.TrimPrefix(err.Error(), "cat "+missing+": exit status 1: ")
		g.Expect(said).To(HaveLen(500))
	})
	t.Run("When the program does not exist, it should return an error that names the program", func(t *testing.T) {
		_, err := host.Exec(t.Context(), nil, "no-such-program", "--flag")
		NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("no-such-program --flag: "), ContainSubstring("not found"))))
	})
	t.Run("When the context is cancelled, it should not run the program", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := host.Exec(ctx, nil, "sleep", "3600")
		NewWithT(t).Expect(err).To(MatchError(context.Canceled))
	})
}

func TestHasSystemd(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"systemd\n": true, "systemd": true, "init\n": false, "systemd-nspawn\n": false, "": false} {
		g, h, _ := newHost(t)
		if name != "" {
			g.Expect(h.Write("/proc/1/comm", []byte(name), 0o444)).To(BeTrue())
		}
		g.Expect(h.HasSystemd()).To(Equal(want), name)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ root, path, want string }{
		{"", "/etc/passwd", "/etc/passwd"}, {"/srv/root", "/etc/passwd", "/srv/root/etc/passwd"}, {"/srv/root/", "etc", "/srv/root/etc"},
	} {
		if got := (&host.Host{Root: tt.root}).Path(tt.path); got != tt.want {
			t.Errorf("%q below %q is %q, want %q", tt.path, tt.root, got, tt.want)
		}
	}
}
