// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/takeover"
)

const (
	disk    = "/dev/disk/by-id/wwn-0x5000"
	config  = `{"ignition":{"version":"3.2.0"}}`
	keyfile = "[connection]\nid=eth0\n"

	// mounts is the beginning of the init script of both systems.
	mounts = "#!/bin/busybox sh\nexport PATH=/bin:/sbin\n/bin/busybox --install -s /bin\nmkdir -p /proc /sys /dev /tmp\n" +
		"mount -t proc proc /proc\nmount -t sysfs sys /sys\nmount -t devtmpfs dev /dev\n"

	// installed is the init script of the first system. It lets node-agent prepare the takeover and runs the commands that
	// node-agent prints. It calls kexec directly, because there is no systemd to run `systemctl kexec`.
	installed = mounts + `
mkdir -p /dev/disk/by-id
ln -s ../../sda ` + disk + `
ip link set lo up
httpd -h /www -p 127.0.0.1:80
if ! node-agent takeover --stream /in/stream.json --ignition /in/node.ign --network /in/network --disk ` + disk + ` --karg nosmt >/said; then
	echo "node-agent refused"
	poweroff -f
fi
cat /said
grep '^  ' /said | sed 's/systemctl kexec/kexec --exec/' >/typed
sh -e /typed
echo "the other kernel was not started"
poweroff -f
`
	// live is the init script of the live system. It prints the command line and the files of each of the three archives.
	live = mounts + `
echo "live: $(cat /proc/cmdline)"
for f in /root.squashfs /config.ign /etc/coreos-firstboot-network/*; do
	echo "live: $f $(stat -c %a $f) $(sha256sum <$f | cut -d' ' -f1)"
done
poweroff -f
`
)

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

func TestTakeover(t *testing.T) {
	folder, nodeAgent := os.Getenv("TAKEOVER_OS"), os.Getenv("TAKEOVER_NODE_AGENT")
	if folder == "" || nodeAgent == "" {
		t.Skip("the parts of the emulated machine are not there: `make test-takeover` brings them")
	}
	g, p := NewWithT(t), parts{t, folder}
	rootFS := files{"root.squashfs": {content: []byte("the root file system")}}
	published := map[string][]byte{
		"kernel": p.kernel(), "rootfs": append(rootFS.archive(t), 0), // The size is not a multiple of the block size.
		"initramfs": zipped(t, files{"init": {[]byte(live), true}, "bin/busybox": p.busybox()}.archive(t)),
	}
	first := files{
		"init": {[]byte(installed), true}, "bin/busybox": p.busybox(), "bin/node-agent": {p.read(nodeAgent), true},
		"in/node.ign": {content: []byte(config)}, "in/network/eth0.nmconnection": {content: []byte(keyfile)},
	}
	maps.Copy(first, p.kexec())
	var artifacts []string
	for name, content := range published {
		first["www/"+name] = file{content: content}
		artifacts = append(artifacts, fmt.Sprintf(`"%s": {"location": "http://127.0.0.1/%s", "sha256": "%s"}`, name, name, sum(content)))
	}
	first["in/stream.json"] = file{content: fmt.Appendf(nil, `{"architectures": {"x86_64": {"artifacts": {"metal": {"release": "42.1", "formats": {"pxe": {%s}}}}}}}`,
		strings.Join(artifacts, ", "))}

	said := boot(t, p.kernel(), first.archive(t))
	t.Log(said)
	g.Expect(said).To(ContainSubstring("Ready to install CoreOS 42.1 on "+disk), "node-agent prepares it on a real kernel")
	g.Expect(said).NotTo(ContainSubstring("the other kernel was not started"))
	g.Expect(said).To(ContainSubstring("live: ignition.firstboot ignition.platform.id=metal console=ttyS0\n"), "the other kernel is up, with its command line")
	want, err := takeover.Installation{
		Disk: disk, Ignition: []byte(config), Keyfiles: map[string][]byte{"eth0.nmconnection": []byte(keyfile)}, KernelArguments: []string{"nosmt"},
	}.Archive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said).To(And(
		ContainSubstring("live: /root.squashfs 644 "+sum([]byte("the root file system"))),
		ContainSubstring("live: /config.ign 600 "+sum(member(t, want, "config.ign"))),
		ContainSubstring("live: /etc/coreos-firstboot-network/eth0.nmconnection 600 "+sum([]byte(keyfile))),
	), "it unpacked all three archives")
}

// member returns a file of an archive.
func member(t *testing.T, archive []byte, name string) []byte {
	t.Helper()
	g := NewWithT(t)
	for reader := cpio.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the archive has no %s", name)
		}
		g.Expect(err).NotTo(HaveOccurred())
		if header.Name == name {
			content, err := io.ReadAll(reader)
			g.Expect(err).NotTo(HaveOccurred())
			return content
		}
	}
}
