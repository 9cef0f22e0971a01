// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cavaliergopher/cpio"
	ignition "github.com/coreos/ignition/v2/config/v3_2"
	. "github.com/onsi/gomega"
	"github.com/vincent-petithory/dataurl"

	"github.com/openshift/hypershift/node-agent/takeover"
)

const disk = "/dev/disk/by-id/wwn-0x5000"

var pointer = []byte(`{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"https://ignition.example.com/ignition","httpHeaders":[{"name":"Authorization","value":"Bearer c2VjcmV0"}]}]}}}`)

func installation() takeover.Installation {
	return takeover.Installation{Disk: disk, Ignition: pointer, KernelArguments: []string{"nosmt", "console=ttyS1"},
		Keyfiles: map[string][]byte{"bond0.nmconnection": []byte("[connection]\nid=bond0\n"), "a.nmconnection": []byte("[ipv4]\n")}}
}

// entry returns an archive entry in the new ASCII format of cpio(5): a header of 110 bytes, the name and the content,
// each padded to four bytes.
func entry(inode, mode, links, name, content string) string {
	number := func(n int) string {
		return strings.ToUpper(hex.EncodeToString([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}))
	}
	const zero = "00000000"
	header := "070701" + inode + mode + zero + zero + links + zero + number(len(content)) + strings.Repeat(zero, 4) + number(len(name)+1) + zero
	pad := func(text string) string { return text + strings.Repeat("\x00", (4-len(text)%4)%4) }
	return pad(header+name+"\x00") + pad(content)
}

func TestArchiveBytes(t *testing.T) {
	g := NewWithT(t)
	i := installation()
	got, err := i.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(i.Archive()).To(Equal(got), "the same installation makes the same bytes")
	live := unpacked(t, got)["config.ign"]
	g.Expect(string(got)).To(Equal(
		entry("00000001", "00008180", "00000001", "config.ign", live) +
			entry("00000002", "000041ED", "00000002", "etc", "") +
			entry("00000003", "000041ED", "00000002", "etc/coreos-firstboot-network", "") +
			entry("00000004", "00008180", "00000001", "etc/coreos-firstboot-network/a.nmconnection", "[ipv4]\n") +
			entry("00000005", "00008180", "00000001", "etc/coreos-firstboot-network/bond0.nmconnection", "[connection]\nid=bond0\n") +
			entry("00000000", "00000000", "00000001", "TRAILER!!!", "")))
}

// unpacked returns the files in an archive.
func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	g := NewWithT(t)
	files, reader := map[string]string{}, cpio.NewReader(bytes.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(reader)
		g.Expect(err).NotTo(HaveOccurred())
		if header.Mode.IsRegular() {
			files[header.Name] = string(content)
		}
	}
}

// TestArchiveForCpio checks that the program cpio can read the archive.
func TestArchiveForCpio(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("the program cpio is not there: `make os-commands` installs it")
	}
	g := NewWithT(t)
	archive, err := installation().Archive()
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "cpio", "--extract", "--quiet", "--no-absolute-filenames")
	cmd.Dir, cmd.Stdin = folder, bytes.NewReader(archive)
	said, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	g.Expect(said).To(BeEmpty())
	for name, content := range unpacked(t, archive) {
		path := filepath.Join(folder, name)
		g.Expect(os.ReadFile(path)).To(BeEquivalentTo(content), name)
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode()).To(Equal(fs.FileMode(0o600)), name)
	}
}

// orders returns the files that the config of the live system contains, read with Ignition's own parser.
func orders(t *testing.T, config string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	parsed, report, err := ignition.Parse([]byte(config))
	g.Expect(err).NotTo(HaveOccurred(), report.String())
	files := map[string]string{}
	for _, f := range parsed.Storage.Files {
		content, err := dataurl.DecodeString(*f.Contents.Source)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.Mode).To(HaveValue(Equal(0o600)), f.Path)
		files[f.Path] = string(content.Data)
	}
	return files
}

func TestArchiveOrders(t *testing.T) {
	t.Run("When all fields are set, it should pass all of them to the installer", func(t *testing.T) {
		g := NewWithT(t)
		archive, err := installation().Archive()
		g.Expect(err).NotTo(HaveOccurred())
		files := unpacked(t, archive)
		g.Expect(files).To(HaveLen(3))
		g.Expect(files).To(HaveKeyWithValue("etc/coreos-firstboot-network/bond0.nmconnection", "[connection]\nid=bond0\n"))
		g.Expect(orders(t, files["config.ign"])).To(Equal(map[string]string{
			"/etc/coreos/installer.d/0000-takeover.yaml": "append-karg:\n- nosmt\n- console=ttyS1\ncopy-network: true\ndest-device: " + disk +
				"\nignition-file: /etc/hypershift/takeover.ign\noffline: true\n",
			"/etc/hypershift/takeover.ign": string(pointer),
		}))
	})
	t.Run("When there are no keyfiles and arguments, it should pass none to the installer", func(t *testing.T) {
		g := NewWithT(t)
		archive, err := takeover.Installation{Disk: disk, Ignition: pointer}.Archive()
		g.Expect(err).NotTo(HaveOccurred())
		files := unpacked(t, archive)
		g.Expect(files).To(HaveLen(1))
		g.Expect(orders(t, files["config.ign"])).To(HaveKeyWithValue("/etc/coreos/installer.d/0000-takeover.yaml",
			"dest-device: "+disk+"\nignition-file: /etc/hypershift/takeover.ign\noffline: true\n"))
	})
	for name, tt := range map[string]struct {
		change  func(*takeover.Installation)
		wantErr string
	}{
		"When the disk has a kernel device name, it should return an error":  {func(i *takeover.Installation) { i.Disk = "/dev/sda" }, `the disk "/dev/sda" is not named by a path below /dev/disk/by-id`},
		"When the disk is a directory, it should return an error":            {func(i *takeover.Installation) { i.Disk = "/dev/disk/by-id/" }, "is not named by a path below"},
		"When the disk path leaves its directory, it should return an error": {func(i *takeover.Installation) { i.Disk = "/dev/disk/by-id/../../sda" }, "is not named by a path below"},
		"When the Ignition config is not JSON, it should return an error":    {func(i *takeover.Installation) { i.Ignition = []byte("#cloud-config") }, "Ignition would not take the config: config is not valid"},
		"When the version of the Ignition config is unsupported, it should return an error": {func(i *takeover.Installation) { i.Ignition = []byte(`{"ignition":{"version":"1.0.0"}}`) },
			"Ignition would not take the config: unsupported config version"},
		"When Ignition rejects the config, it should return the reason": {func(i *takeover.Installation) {
			i.Ignition = []byte(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"etc/motd"}]}}`)
		}, "path not absolute"},
		"When the name of a keyfile leaves its directory, it should return an error": {func(i *takeover.Installation) {
			i.Keyfiles = map[string][]byte{"../../config.nmconnection": nil}
		}, "is not the name of a NetworkManager keyfile"},
		"When a file is not a keyfile, it should return an error":            {func(i *takeover.Installation) { i.Keyfiles = map[string][]byte{"ifcfg-eth0": nil} }, "ends with .nmconnection"},
		"When a kernel argument contains a space, it should return an error": {func(i *takeover.Installation) { i.KernelArguments = []string{"a b"} }, `"a b" is not one kernel argument`},
		"When a kernel argument is empty, it should return an error":         {func(i *takeover.Installation) { i.KernelArguments = []string{""} }, `"" is not one kernel argument`},
	} {
		t.Run(name, func(t *testing.T) {
			i := installation()
			tt.change(&i)
			_, err := i.Archive()
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
		})
	}
}

// mirror serves the files of a live system, and records which were fetched.
type mirror struct {
	*httptest.Server
	mu      sync.Mutex
	files   map[string][]byte
	fetched []string
	// cut names the file of which only half is sent.
	cut string
}

func newMirror(t *testing.T) *mirror {
	var initramfs bytes.Buffer
	z := gzip.NewWriter(&initramfs)
	_, err := z.Write([]byte(entry("00000001", "00008180", "00000001", "init", "live") + entry("00000000", "00000000", "00000001", "TRAILER!!!", "")))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(z.Close()).To(Succeed())
	for initramfs.Len()%4 == 0 {
		initramfs.WriteByte(0) // The initramfs must not end at a boundary of four bytes, so that the test covers the padding.
	}
	m := &mirror{files: map[string][]byte{
		"/kernel": []byte("vmlinuz"), "/initramfs": initramfs.Bytes(),
		"/rootfs": []byte(entry("00000001", "00008180", "00000001", "root.squashfs", "root") + entry("00000000", "00000000", "00000001", "TRAILER!!!", "") + "\x00"),
	}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.fetched = append(m.fetched, r.URL.Path)
		content, ok := m.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == m.cut {
			w.Header().Set("Content-Length", strconv.Itoa(2*len(content)))
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) live() *takeover.Live {
	artifact := func(name string) takeover.Artifact {
		sum := sha256.Sum256(m.files["/"+name])
		return takeover.Artifact{Location: m.URL + "/" + name, SHA256: hex.EncodeToString(sum[:])}
	}
	return &takeover.Live{Release: "421.9", Kernel: artifact("kernel"), Initramfs: artifact("initramfs"), RootFS: artifact("rootfs")}
}

const folder = "/var/lib/hypershift/takeover"

func (m machine) prepare(t *testing.T, mirror *mirror, live *takeover.Live, i takeover.Installation) (*takeover.Prepared, error) {
	return takeover.Prepare(t.Context(), m.host, mirror.Client(), live, i, folder)
}

func TestPrepare(t *testing.T) {
	t.Run("When the machine can be taken over, it should prepare all files and not download them again", func(t *testing.T) {
		m, mirror := newMachine(t), newMirror(t)
		i := installation()
		i.Disk = ""
		prepared, err := m.prepare(t, mirror, mirror.live(), i)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(prepared).To(Equal(&takeover.Prepared{Release: "421.9", Disk: disk, Kernel: folder + "/kernel", Initramfs: folder + "/initramfs",
			CommandLine: "ignition.firstboot ignition.platform.id=metal console=tty0 console=ttyS0,115200"}))
		m.Expect(m.host.Read(prepared.Kernel)).To(BeEquivalentTo("vmlinuz"))
		m.Expect(mirror.fetched).To(Equal([]string{"/kernel", "/initramfs", "/rootfs"}))

		archive, err := installation().Archive()
		m.Expect(err).NotTo(HaveOccurred())
		whole, err := m.host.Read(prepared.Initramfs)
		m.Expect(err).NotTo(HaveOccurred())
		parts := [][]byte{aligned(mirror.files["/initramfs"]), aligned(mirror.files["/rootfs"]), archive}
		m.Expect(whole).To(Equal(bytes.Join(parts, nil)), "the kernel looks for each archive at a boundary of four bytes")
		info, err := os.Stat(m.host.Path(prepared.Initramfs))
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(info.Mode().Perm()).To(Equal(fs.FileMode(0o600)), "it holds the token")

		_, err = m.prepare(t, mirror, mirror.live(), i)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(mirror.fetched).To(HaveLen(3))
	})
	for name, tt := range map[string]struct {
		change  func(*machine, *mirror, *takeover.Live)
		wantErr string
	}{
		"When kexec is disabled, it should return an error before anything is fetched": {
			func(m *machine, _ *mirror, _ *takeover.Live) { m.put("/proc/sys/kernel/kexec_load_disabled", "1\n") }, "kexec_load_disabled"},
		"When the disk cannot be identified, it should return an error before anything is fetched": {
			func(m *machine, _ *mirror, _ *takeover.Live) { m.names(nil) }, "finding the disk that the machine starts from: sda has no name"},
		"When a file does not match its checksum, it should return an error": {
			func(_ *machine, s *mirror, _ *takeover.Live) { s.files["/rootfs"] = []byte("evil") }, "/rootfs: SHA-256 mismatch: got"},
		"When the server lacks a file, it should return an error that names the file": {
			func(_ *machine, s *mirror, _ *takeover.Live) { delete(s.files, "/initramfs") }, "/initramfs: the server answered 404 Not Found"},
		"When the disk does not exist, it should return an error before anything is fetched": {
			func(m *machine, _ *mirror, _ *takeover.Live) { m.chosen = "/dev/disk/by-id/wwn-0x5001" }, "there is no disk /dev/disk/by-id/wwn-0x5001"},
		"When the disk is a partition, it should return an error before anything is fetched": {
			func(m *machine, _ *mirror, _ *takeover.Live) {
				m.put("/sys/class/block/sda2/partition", "2\n")
				m.chosen = "/dev/disk/by-id/wwn-0x5000-part2"
			}, "wwn-0x5000-part2 is a partition: name the disk that it is on"},
		"When the server sends a truncated file, it should return an error that names the file": {
			func(_ *machine, s *mirror, _ *takeover.Live) { s.cut = "/rootfs" }, "/rootfs: unexpected EOF"},
		"When the server is unreachable, it should return an error that names the file": {
			func(_ *machine, s *mirror, l *takeover.Live) { s.Close() }, "/kernel: Get "},
	} {
		t.Run(name, func(t *testing.T) {
			m, mirror := newMachine(t), newMirror(t)
			_, err := m.prepare(t, mirror, mirror.live(), installation())
			m.Expect(err).NotTo(HaveOccurred())
			// The mirror switches to a new release.
			mirror.fetched = nil
			for name := range mirror.files {
				mirror.files[name] = append(mirror.files[name], "of another release"...)
			}
			live := mirror.live()
			tt.change(&m, mirror, live)
			i := installation()
			i.Disk = m.chosen
			_, err = m.prepare(t, mirror, live, i)
			m.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
			m.Expect(err.Error()).NotTo(ContainSubstring("c2VjcmV0"))
			m.Expect(m.host.Exists(folder+"/initramfs")).To(BeFalse(), "there is nothing that could be started, of before neither")
			left, _ := filepath.Glob(m.host.Path(folder + "/*.partial"))
			m.Expect(left).To(BeEmpty())
			if strings.Contains(name, "before anything is fetched") {
				m.Expect(mirror.fetched).To(BeEmpty())
			}
		})
	}
	t.Run("When a power loss left a partial file, it should overwrite that file", func(t *testing.T) {
		m, mirror := newMachine(t), newMirror(t)
		m.put(folder+"/kernel.partial", "vmlinuz of another release, and longer")
		_, err := m.prepare(t, mirror, mirror.live(), installation())
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(m.host.Read(folder + "/kernel")).To(BeEquivalentTo("vmlinuz"))
		m.Expect(m.host.Exists(folder + "/kernel.partial")).To(BeFalse())
	})
}

// aligned pads content to a multiple of four bytes.
func aligned(content []byte) []byte {
	return append(bytes.Clone(content), make([]byte, (4-len(content)%4)%4)...)
}
