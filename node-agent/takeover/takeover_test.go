// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/node-agent/takeover"
)

// machine is a directory with the files in which the kernel describes a machine.
type machine struct {
	*GomegaWithT
	host *host.Host
	// chosen is the disk given by the user; empty for none.
	chosen string
}

// flat is the mount table with MAAS's storage layout "flat": one disk, whose second partition is the root.
const flat = "22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n30 22 8:1 / /boot/efi rw - vfat /dev/sda1 rw\n31 22 8:17 / /srv rw - xfs /dev/sdb1 rw\n"

// newMachine returns a machine with two disks and 8 GiB of memory. The system is on the first disk.
func newMachine(t *testing.T) machine {
	m := machine{GomegaWithT: NewWithT(t), host: &host.Host{Root: t.TempDir(), Log: io.Discard}}
	m.put("/proc/self/mountinfo", flat)
	m.put("/proc/meminfo", "MemTotal:        8130000 kB\nMemFree: 1024 kB\n")
	m.put("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=UUID=1 ro console=tty0 console=ttyS0,115200 quiet\n")
	m.put("/proc/sys/kernel/kexec_load_disabled", "0\n")
	m.put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n")
	m.disk("sda", "8:0", map[string]string{"sda1": "8:1", "sda2": "8:2"})
	m.disk("sdb", "8:16", map[string]string{"sdb1": "8:17"})
	m.names(map[string]string{
		"ata-ACME_1": "sda", "ata-ACME_1-part1": "sda1", "wwn-0x5000": "sda", "wwn-0x5000-part2": "sda2", "wwn-0x6000": "sdb", "ata-ACME_2": "sdb",
		"lvm-pv-uuid-x": "sda",
	})
	return m
}

func (m machine) put(path, text string) {
	target := m.host.Path(path)
	m.Expect(os.MkdirAll(filepath.Dir(target), 0o755)).To(Succeed())
	m.Expect(os.WriteFile(target, []byte(text), 0o600)).To(Succeed())
}

// disk adds a disk with its partitions to /sys.
func (m machine) disk(name, number string, partitions map[string]string) {
	m.device("/sys/devices/pci0/"+name, number)
	for partition, number := range partitions {
		m.device("/sys/devices/pci0/"+name+"/"+partition, number)
		m.put("/sys/devices/pci0/"+name+"/"+partition+"/partition", "1\n")
	}
}

func (m machine) device(folder, number string) {
	m.Expect(os.MkdirAll(m.host.Path(folder+"/slaves"), 0o755)).To(Succeed())
	m.link("/sys/dev/block/"+number, folder)
}

func (m machine) link(path, target string) {
	m.Expect(os.MkdirAll(filepath.Dir(m.host.Path(path)), 0o755)).To(Succeed())
	relative, err := filepath.Rel(filepath.Dir(path), target)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(os.Symlink(relative, m.host.Path(path))).To(Succeed())
}

// names sets the links in /dev/disk/by-id, which udev creates.
func (m machine) names(links map[string]string) {
	m.Expect(os.RemoveAll(m.host.Path("/dev/disk/by-id"))).To(Succeed())
	for name, device := range links {
		m.link("/dev/disk/by-id/"+name, "/dev/"+device)
	}
}

func TestDisk(t *testing.T) {
	const lvm = "22 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n"
	tests := map[string]struct {
		change        func(machine)
		want, wantErr string
	}{
		"When the system is on one disk, it should return the disk's WWN path": {want: "/dev/disk/by-id/wwn-0x5000"},
		"When the disk has no WWN, it should return the first of its other names": {
			change: func(m machine) {
				m.names(map[string]string{"scsi-0QEMU_b": "sda", "scsi-0QEMU_a": "sda", "wwn-0x6000": "sdb"})
			},
			want: "/dev/disk/by-id/scsi-0QEMU_a",
		},
		"When the disk is NVMe, it should return its EUI path": {
			change: func(m machine) {
				m.disk("nvme0n1", "259:0", map[string]string{"nvme0n1p1": "259:1"})
				m.names(map[string]string{"nvme-ACME_7": "nvme0n1", "nvme-eui.0025": "nvme0n1", "wwn-0x6000": "sdb"})
				m.put("/proc/self/mountinfo", "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n")
			},
			want: "/dev/disk/by-id/nvme-eui.0025",
		},
		"When the root file system is on a disk without partitions, it should return that disk": {
			change: func(m machine) { m.put("/proc/self/mountinfo", "22 1 8:16 / / rw - ext4 /dev/sdb rw\n") },
			want:   "/dev/disk/by-id/wwn-0x6000",
		},
		"When another file system is mounted over the root, it should use the last mount": {
			change: func(m machine) { m.put("/proc/self/mountinfo", flat+"40 1 8:17 / / rw - ext4 /dev/sdb1 rw\n") },
			// /boot/efi is still on sda.
			wantErr: "/ lies on sdb, and /boot/efi on sda: choose a storage layout with one disk in MAAS",
		},
		"When the disk has no persistent name, it should return an error": {
			change: func(m machine) {
				m.names(map[string]string{"ata-ACME_1-part1": "sda1", "wwn-0x6000": "sdb", "lvm-pv-uuid-x": "sda"})
			},
			wantErr: "sda has no name below /dev/disk/by-id",
		},
		"When there are no persistent names, it should return an error": {
			change:  func(m machine) { m.names(nil) },
			wantErr: "sda has no name below /dev/disk/by-id",
		},
		"When the root is on LVM, it should return an error that names the devices": {
			change: func(m machine) {
				m.device("/sys/devices/virtual/block/dm-0", "253:0")
				m.put("/sys/devices/virtual/block/dm-0/slaves/sda3", "")
				m.put("/sys/devices/virtual/block/dm-0/slaves/sdb1", "")
				m.put("/proc/self/mountinfo", lvm)
			},
			wantErr: "/: it lies on dm-0, which is made of sda3, sdb1: choose the storage layout `flat` in MAAS",
		},
		"When the disk is a multipath device, it should return an error": {
			change: func(m machine) {
				m.device("/sys/devices/virtual/block/dm-1", "253:1")
				m.put("/sys/devices/virtual/block/dm-1/slaves/sda", "")
				m.put("/proc/self/mountinfo", flat+"33 22 253:1 / /boot rw - ext4 /dev/mapper/mpatha rw\n")
			},
			wantErr: "/boot: it lies on dm-1, which is made of sda",
		},
		"When the root file system is not on a single disk, it should return an error": {
			change:  func(m machine) { m.put("/proc/self/mountinfo", "22 1 0:26 / / rw - overlay overlayroot rw\n") },
			wantErr: "/: its file system is not on a single disk (device 0:26)",
		},
		"When there are no mounts, it should return an error": {
			change:  func(m machine) { m.put("/proc/self/mountinfo", "") },
			wantErr: "names no root file system",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if tt.change != nil {
				tt.change(m)
			}
			got, err := takeover.Disk(m.host)
			if tt.wantErr != "" {
				m.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
				return
			}
			m.Expect(err).NotTo(HaveOccurred())
			m.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestCheck(t *testing.T) {
	const variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
	tests := map[string]struct{ path, text, wantErr string }{
		"When all requirements are met, it should succeed":                              {},
		"When secure boot is supported but off, it should succeed":                      {variable, "\x06\x00\x00\x00\x00", ""},
		"When secure boot is on, it should return an error":                             {variable, "\x06\x00\x00\x00\x01", "secure boot is on"},
		"When the kernel is locked down, it should return an error that names the mode": {"/sys/kernel/security/lockdown", "none [integrity] confidentiality\n", "none [integrity] confidentiality"},
		"When the kernel does not support lockdown, it should succeed":                  {"/sys/kernel/security/lockdown", "", ""},
		"When kexec is disabled, it should return an error that names the setting":      {"/proc/sys/kernel/kexec_load_disabled", "1\n", "kernel.kexec_load_disabled is 1"},
		"When there is too little memory, it should return an error with both sizes":    {"/proc/meminfo", "MemTotal: 2048000 kB\n", "2000 MiB of memory, and the live system needs 4096"},
		"When there are 4 GiB minus the kernel's reserve, it should succeed":            {"/proc/meminfo", "MemTotal: 3900000 kB\n", ""},
		"When the amount of memory is unknown, it should return an error":               {"/proc/meminfo", "", "does not say how much memory"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if tt.path != "" {
				m.put(tt.path, tt.text)
			}
			err := takeover.Check(m.host)
			if tt.wantErr == "" {
				m.Expect(err).NotTo(HaveOccurred())
				return
			}
			m.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
		})
	}
}

func TestFromStream(t *testing.T) {
	const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	artifact := func(name string) string {
		return `{"location": "https://mirror.example.com/` + name + `", "sha256": "` + sum + `"}`
	}
	stream := func(kernel string) string {
		return `{"stream": "rhcos-4.21", "architectures": {"x86_64": {"artifacts": {"metal": {"release": "421.9", "formats": {"iso": {"disk": {}}, "pxe": {
			"kernel": ` + kernel + `, "initramfs": ` + artifact("initramfs") + `, "rootfs": ` + artifact("rootfs") + `}}}}}}}`
	}
	tests := map[string]struct{ stream, arch, wantErr string }{
		"When the stream has the architecture, it should return its live system":    {stream(artifact("kernel")), "amd64", ""},
		"When the stream lacks the architecture, it should return an error":         {stream(artifact("kernel")), "arm64", "has nothing for the architecture arm64"},
		"When an artifact has no checksum, it should return an error":               {stream(`{"location": "https://mirror.example.com/k"}`), "amd64", "pxe.kernel for amd64: it has no sha256"},
		"When a checksum is truncated, it should return an error":                   {stream(`{"location": "https://mirror.example.com/k", "sha256": "e3b0"}`), "amd64", "it has no sha256"},
		"When an artifact is missing, it should return an error":                    {stream(`{}`), "amd64", `the location "" is not an http or https URL`},
		"When the location of an artifact is a file URL, it should return an error": {stream(`{"location": "file:///etc/shadow", "sha256": "` + sum + `"}`), "amd64", "not an http or https URL"},
		"When the stream is not JSON, it should return an error":                    {"<html>", "amd64", "reading the stream metadata"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live, err := takeover.FromStream([]byte(tt.stream), tt.arch)
			if tt.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			at := func(name string) takeover.Artifact {
				return takeover.Artifact{Location: "https://mirror.example.com/" + name, SHA256: sum}
			}
			g.Expect(live).To(Equal(&takeover.Live{Release: "421.9", Kernel: at("kernel"), Initramfs: at("initramfs"), RootFS: at("rootfs")}))
		})
	}
}
