// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/takeover"
)

// unreadable replaces a file of the kernel or of udev with a directory, so that it cannot be read.
func (m machine) unreadable(path string) {
	m.Expect(os.RemoveAll(m.host.Path(path))).To(Succeed())
	m.Expect(os.MkdirAll(m.host.Path(path+"/x"), 0o755)).To(Succeed())
}

// TestUnreadable checks that unknown values are errors and not guessed. They decide which disk is overwritten.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"whether secure boot is on":         "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		"whether its kernel is locked down": "/sys/kernel/security/lockdown", "whether it may start another kernel": "/proc/sys/kernel/kexec_load_disabled", "its memory": "/proc/meminfo",
	} {
		t.Run("When the machine does not report "+name+", it should return an error", func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.unreadable(path)
			m.Expect(takeover.Check(m.host)).To(MatchError(ContainSubstring(path)))
		})
	}
	for name, text := range map[string]string{"is not a number": "MemTotal: much kB\n", "is truncated": "MemTotal:\n", "is missing": "MemFree: 8130000 kB\nSwapTotal: 8130000 kB\n"} {
		t.Run("When the reported memory "+name+", it should return an error", func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.put("/proc/meminfo", text)
			m.Expect(takeover.Check(m.host)).To(MatchError(ContainSubstring("/proc/meminfo")))
		})
	}
	t.Run("When memory is 1 KiB below the minimum, it should return an error, and succeed at the minimum", func(t *testing.T) {
		m := newMachine(t)
		m.put("/proc/meminfo", "MemTotal: 3670015 kB\n")
		m.Expect(takeover.Check(m.host)).To(MatchError(ContainSubstring("3583 MiB of memory")))
		m.put("/proc/meminfo", "MemTotal: 3670016 kB\n")
		m.Expect(takeover.Check(m.host)).To(Succeed())
	})
	for name, harm := range map[string]func(machine){
		"the mounts": func(m machine) { m.unreadable("/proc/self/mountinfo") },
		"the names of its disks": func(m machine) {
			m.Expect(os.RemoveAll(m.host.Path("/dev/disk/by-id"))).To(Succeed())
			m.put("/dev/disk/by-id", "")
		},
		"the devices below the disk": func(m machine) {
			m.Expect(os.RemoveAll(m.host.Path("/sys/devices/pci0/sda/slaves"))).To(Succeed())
			m.put("/sys/devices/pci0/sda/slaves", "")
		},
		"the location of the device": func(m machine) {
			m.Expect(os.Remove(m.host.Path("/sys/dev/block/8:2"))).To(Succeed())
			m.Expect(os.Symlink("8:2", m.host.Path("/sys/dev/block/8:2"))).To(Succeed())
		},
	} {
		t.Run("When the machine does not report "+name+", it should return no disk", func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			harm(m)
			found, err := takeover.Disk(m.host)
			m.Expect(err).To(HaveOccurred())
			m.Expect(found).To(BeEmpty())
		})
	}
}

// TestNotPrepared checks failed writes. Afterwards no live system must be startable, and nothing must have been
// downloaded unnecessarily.
func TestNotPrepared(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		harm    func(machine)
		fetched int
	}{
		"an initramfs that is a directory":      {func(m machine) { m.put(folder+"/initramfs/x", "") }, 0},
		"a file at the path of the directory":   {func(m machine) { m.put(folder, "") }, 0},
		"a directory at the path of the kernel": {func(m machine) { m.put(folder+"/kernel/x", "") }, 1},
		"an unreadable kernel command line":     {func(m machine) { m.unreadable("/proc/cmdline") }, 0},
		"a disk name that is not a symlink":     {func(m machine) { m.Expect(os.Remove(m.host.Path(disk))).To(Succeed()); m.put(disk, "") }, 0},
		"a blocked path for the initramfs":      {func(m machine) { m.put(folder+"/initramfs.partial/x", "") }, 3},
	} {
		t.Run("When the machine has "+name+", nothing should be startable", func(t *testing.T) {
			t.Parallel()
			m, mirror := newMachine(t), newMirror(t)
			tt.harm(m)
			prepared, err := m.prepare(t, mirror, mirror.live(), installation())
			m.Expect(err).To(HaveOccurred())
			m.Expect(err.Error()).NotTo(ContainSubstring("c2VjcmV0"))
			m.Expect(prepared).To(BeNil())
			m.Expect(len(mirror.fetched)).To(BeNumerically("<=", tt.fetched))
			info, err := os.Stat(m.host.Path(folder + "/initramfs"))
			m.Expect(err != nil || info.IsDir()).To(BeTrue())
		})
	}
}

// TestBoundaries checks minimal inputs.
func TestBoundaries(t *testing.T) {
	t.Parallel()
	t.Run("When the secure boot variable has only attributes, it should not count as secure boot", func(t *testing.T) {
		m := newMachine(t)
		m.put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\x06\x00\x00\x00")
		m.Expect(takeover.Check(m.host)).To(Succeed())
	})
	t.Run("When there is one kernel argument, it should pass the argument to the installer", func(t *testing.T) {
		g := NewWithT(t)
		archive, err := takeover.Installation{Disk: disk, Ignition: pointer, KernelArguments: []string{"nosmt"}}.Archive()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(orders(t, unpacked(t, archive)["config.ign"])).To(HaveKeyWithValue("/etc/coreos/installer.d/0000-takeover.yaml", HavePrefix("append-karg:\n- nosmt\n")))
	})
	const artifact = `{"location": "https://mirror.example.com/f", "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`
	stream := func(name, text string) []byte {
		files := map[string]string{"kernel": artifact, "initramfs": artifact, "rootfs": artifact}
		files[name] = text
		return []byte(`{"architectures": {"aarch64": {"artifacts": {"metal": {"formats": {"pxe": {"kernel": ` + files["kernel"] + `, "initramfs": ` + files["initramfs"] + `, "rootfs": ` + files["rootfs"] + `}}}}}}}`)
	}
	t.Run("When a stream has no release name, it should still return the live system", func(t *testing.T) {
		g := NewWithT(t)
		live, err := takeover.FromStream(stream("kernel", artifact), "arm64")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Release).To(Equal("without a name"))
	})
	for _, name := range []string{"kernel", "initramfs", "rootfs"} {
		t.Run("When the stream's "+name+" is missing, it should name the artifact", func(t *testing.T) {
			_, err := takeover.FromStream(stream(name, "{}"), "arm64")
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("pxe." + name + " for arm64: ")))
		})
	}
}
