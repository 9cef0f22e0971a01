// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestPartitionNodes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making devices needs root")
	}
	g := NewWithT(t)
	sys, target := t.TempDir(), filepath.Join(t.TempDir(), "sda")
	for name, number := range map[string]string{"loop12p1": "259:3\n", "loop12p15": "259:4\n"} {
		dir := filepath.Join(sys, "block/loop12", name)
		g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "dev"), []byte(number), 0o600)).To(Succeed())
	}
	g.Expect(partitionNodes(sys, 12, target)).To(Succeed())
	for path, minor := range map[string]uint32{target + "1": 3, target + "15": 4} {
		var stat unix.Stat_t
		g.Expect(unix.Stat(path, &stat)).To(Succeed())
		g.Expect(stat.Mode & unix.S_IFMT).To(BeEquivalentTo(unix.S_IFBLK))
		g.Expect(stat.Rdev).To(Equal(unix.Mkdev(259, minor)))
	}

	g.Expect(partitionNodes(sys, 13, target)).To(Succeed(), "a disk without partitions has none")
	dir := filepath.Join(sys, "block/loop14/loop14p1")
	g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "dev"), []byte("nonsense"), 0o600)).To(Succeed())
	g.Expect(partitionNodes(sys, 14, target)).To(MatchError(ContainSubstring("loop14p1")))
}

func TestAttachWithoutLoopDevices(t *testing.T) {
	g := NewWithT(t)
	err := attach(Disk{Name: "sda", Image: filepath.Join(t.TempDir(), "none.img")}, t.TempDir())
	g.Expect(err).To(MatchError(os.ErrNotExist), "an image that is missing is not a host without loop devices")
}
