// SPDX-License-Identifier: Apache-2.0

// Package takeover tests the takeover by node-agent on an emulated machine with kernels of a distribution. The machine
// prepares the takeover, loads the other kernel with the command that node-agent prints, and starts it.
package takeover

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cavaliergopher/cpio"
	. "github.com/onsi/gomega"
)

// limit bounds the time in which both systems start and shut down. It takes seconds, except on a busy host.
const limit = 10 * time.Minute

// file is a file of a machine's initramfs.
type file struct {
	content    []byte
	executable bool
}

// files maps paths, without the leading slash, to files.
type files map[string]file

// archive returns an initramfs with the files and their parent folders.
func (f files) archive(t *testing.T) []byte {
	t.Helper()
	g := NewWithT(t)
	var out bytes.Buffer
	writer, made := cpio.NewWriter(&out), map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		folders := []string{}
		for folder := path.Dir(name); !made[folder]; folder = path.Dir(folder) {
			made[folder] = true
			folders = append(folders, folder)
		}
		for _, folder := range slices.Backward(folders) {
			g.Expect(writer.WriteHeader(&cpio.Header{Name: folder, Mode: cpio.TypeDir | 0o755, Links: 2})).To(Succeed())
		}
		mode := cpio.FileMode(0o644)
		if f[name].executable {
			mode = 0o755
		}
		g.Expect(writer.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | mode, Size: int64(len(f[name].content))})).To(Succeed())
		_, err := writer.Write(f[name].content)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(writer.Close()).To(Succeed())
	return out.Bytes()
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, err := writer.Write(content)
	NewWithT(t).Expect(errors.Join(err, writer.Close())).To(Succeed())
	return out.Bytes()
}

// parts reads the parts of the emulated systems from the folder into which the Makefile unpacked them.
type parts struct {
	t      *testing.T
	folder string
}

func (p parts) read(pattern string) []byte {
	p.t.Helper()
	g := NewWithT(p.t)
	found, err := filepath.Glob(pattern)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveLen(1), pattern)
	content, err := os.ReadFile(found[0])
	g.Expect(err).NotTo(HaveOccurred())
	return content
}

func (p parts) kernel() []byte { return p.read(filepath.Join(p.folder, "boot/vmlinuz-*")) }

func (p parts) busybox() file {
	return file{p.read(filepath.Join(p.folder, "bin/busybox")), true}
}

// libraries is the folder in which the dynamic loader searches.
const libraries = "usr/lib/x86_64-linux-gnu"

var library = regexp.MustCompile(`(/\S+) \(0x`)

// kexec returns the kexec program and the libraries that it is linked to.
func (p parts) kexec() files {
	p.t.Helper()
	program := filepath.Join(p.folder, "sbin/kexec")
	ldd := exec.CommandContext(p.t.Context(), "ldd", program)
	ldd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(p.folder, libraries))
	linked, err := ldd.Output()
	NewWithT(p.t).Expect(err).NotTo(HaveOccurred())
	all := files{"sbin/kexec": {p.read(program), true}}
	for _, match := range library.FindAllStringSubmatch(string(linked), -1) {
		folder := libraries
		if strings.Contains(match[1], "/ld-linux") {
			folder = "lib64"
		}
		all[path.Join(folder, path.Base(match[1]))] = file{p.read(match[1]), true}
	}
	return all
}

// boot starts a machine with a kernel and an initramfs. It returns the console output after the machine has shut down.
func boot(t *testing.T, kernel, initramfs []byte) string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		at := filepath.Join(folder, name)
		g.Expect(os.WriteFile(at, content, 0o600)).To(Succeed())
		return at
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	// No acceleration, because the test also runs in a virtual machine that has none.
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-m", "4096", "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
		"-no-reboot", "-kernel", write("kernel", kernel), "-initrd", write("initramfs", initramfs), "-append", "console=ttyS0 panic=-1 quiet")
	said, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	return strings.ReplaceAll(string(said), "\r", "")
}
