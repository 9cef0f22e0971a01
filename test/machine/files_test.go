// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a root file system is owned by root")
	}
}

func populated(t *testing.T) Config {
	t.Helper()
	needRoot(t)
	config := Config{Name: "x", Dir: t.TempDir(), Hostname: "node-1"}
	NewWithT(t).Expect(populate(config)).To(Succeed())
	return config
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(data)
}

func TestPopulate(t *testing.T) {
	config := populated(t)
	t.Run("When the root is empty, it should get the files that programs expect", func(t *testing.T) {
		g := NewWithT(t)
		for _, dir := range []string{"etc/systemd/system", "var/lib", "var/log/units", "proc", "sys", "run", "tmp", "root", "opt"} {
			g.Expect(config.Path(dir)).To(BeADirectory())
		}
		g.Expect(read(t, config.Path("/etc/hostname"))).To(Equal("node-1\n"))
		g.Expect(read(t, config.Path("/etc/hosts"))).To(ContainSubstring("127.0.1.1 node-1"))
		g.Expect(read(t, config.Path("/etc/passwd"))).To(ContainSubstring("root:x:0:0:"))
		g.Expect(os.Readlink(config.Path("/var/run"))).To(Equal("../run"))
	})
	t.Run("When a folder is world-writable, it should be sticky", func(t *testing.T) {
		info, err := os.Stat(config.Path("/tmp"))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode() & (fs.ModePerm | fs.ModeSticky)).To(Equal(0o777 | fs.ModeSticky))
	})
	t.Run("When a file has passwords, only root should be able to read it", func(t *testing.T) {
		for _, name := range []string{"/etc/shadow", "/etc/gshadow"} {
			info, err := os.Stat(config.Path(name))
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)), name)
		}
	})
	t.Run("When the user core gets keys, it should own its home folder", func(t *testing.T) {
		info, err := os.Stat(config.Path("/home/core"))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Sys().(*syscall.Stat_t).Uid).To(BeEquivalentTo(coreUser))
	})
	t.Run("When the host's folders are links into /usr, the machine should have the same links", func(t *testing.T) {
		g := NewWithT(t)
		target, err := os.Readlink("/bin")
		if err != nil {
			g.Expect(config.Path("/bin")).To(BeADirectory())
			return
		}
		g.Expect(os.Readlink(config.Path("/bin"))).To(Equal(target))
	})
}

func TestPopulateAgain(t *testing.T) {
	config := populated(t)
	g := NewWithT(t)
	identity := read(t, config.Path("/etc/machine-id"))
	g.Expect(os.WriteFile(config.Path("/etc/hostname"), []byte("renamed\n"), 0o600)).To(Succeed())
	g.Expect(os.Remove(config.Path("/etc/services"))).To(Or(Succeed(), MatchError(fs.ErrNotExist)))
	g.Expect(populate(config)).To(Succeed())
	g.Expect(read(t, config.Path("/etc/hostname"))).To(Equal("renamed\n"), "what the machine wrote stays")
	g.Expect(read(t, config.Path("/etc/machine-id"))).To(Equal(identity))
	if _, err := os.Stat("/etc/services"); err == nil {
		g.Expect(config.Path("/etc/services")).To(BeARegularFile(), "what is missing is made")
	}
	g.Expect(machineID()).NotTo(Equal(machineID()), "two machines are never the same")
}

func TestWriteMissingAfterACrash(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(path+".new", []byte("half a fi"), 0o600)).To(Succeed())
	g.Expect(writeMissing(path, "whole")).To(Succeed())
	g.Expect(read(t, path)).To(Equal("whole"))
	g.Expect(path + ".new").NotTo(BeAnExistingFile())
}

func TestCopyMissing(t *testing.T) {
	g := NewWithT(t)
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "deep", "to")
	g.Expect(os.WriteFile(filepath.Join(from, "file"), []byte("content"), 0o600)).To(Succeed())
	g.Expect(os.Symlink("/anywhere", filepath.Join(from, "link"))).To(Succeed())
	for range 2 {
		g.Expect(copyMissing(from, to)).To(Succeed())
		g.Expect(read(t, filepath.Join(to, "file"))).To(Equal("content"))
		g.Expect(os.Readlink(filepath.Join(to, "link"))).To(Equal("/anywhere"), "links are copied, not followed")
	}
	g.Expect(copyMissing(filepath.Join(from, "file"), filepath.Join(to, "other", "file"))).To(Succeed())
	g.Expect(read(t, filepath.Join(to, "other", "file"))).To(Equal("content"))
	g.Expect(copyMissing("/does/not/exist", to)).To(Succeed(), "the host may lack it")
}

func TestMakeTarget(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	file := filepath.Join(root, "file")
	g.Expect(os.WriteFile(file, []byte("mine"), 0o600)).To(Succeed())
	g.Expect(makeTarget(root, filepath.Join(root, "a/b"))).To(Succeed())
	g.Expect(filepath.Join(root, "a/b")).To(BeADirectory())
	g.Expect(makeTarget(file, filepath.Join(root, "c/d"))).To(Succeed())
	g.Expect(filepath.Join(root, "c/d")).To(BeARegularFile())
	g.Expect(makeTarget(file, file)).To(Succeed())
	g.Expect(read(t, file)).To(Equal("mine"), "what is there is not emptied")
	g.Expect(makeTarget("/does/not/exist", file)).To(MatchError(fs.ErrNotExist))
}
