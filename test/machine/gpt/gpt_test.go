// SPDX-License-Identifier: Apache-2.0

package gpt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/machine/gpt"
)

const diskBytes = 64 << 20

func newDisk(t *testing.T) *os.File {
	t.Helper()
	g := NewWithT(t)
	disk, err := os.Create(filepath.Join(t.TempDir(), "disk.img"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { disk.Close() })
	g.Expect(disk.Truncate(diskBytes)).To(Succeed())
	return disk
}

func layout(t *testing.T) []gpt.Partition {
	t.Helper()
	partitions, err := gpt.Layout(diskBytes, []gpt.Part{
		{Name: "BIOS-BOOT", Type: gpt.BIOSBoot, MiB: 1},
		{Name: "root", Type: gpt.Linux},
		{Name: "helper", Type: gpt.Linux, MiB: 8},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return partitions
}

func names(partitions []gpt.Partition) map[int]string {
	result := map[int]string{}
	for _, p := range partitions {
		result[p.Number] = p.Name
	}
	return result
}

func TestLayout(t *testing.T) {
	t.Run("When a partition has no size, it should get the remaining space", func(t *testing.T) {
		partitions := layout(t)
		var sizes []int64
		for _, p := range partitions {
			sizes = append(sizes, p.Size()>>20)
		}
		if diff := cmp.Diff([]int64{1, 64 - 2 - 1 - 8, 8}, sizes); diff != "" {
			t.Errorf("sizes in MiB (-want +got):\n%s", diff)
		}
		for i := 1; i < len(partitions); i++ {
			if partitions[i].First != partitions[i-1].Last+1 {
				t.Errorf("partition %d starts at %d, the one before ends at %d", i+1, partitions[i].First, partitions[i-1].Last)
			}
		}
	})
	t.Run("When the disk is too small, the error should say by how much", func(t *testing.T) {
		_, err := gpt.Layout(4<<20, []gpt.Part{{Name: "a", MiB: 8}})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("7 MiB more are needed")))
	})
}

func TestWriteAndRead(t *testing.T) {
	t.Run("When a table is written, it should be read back", func(t *testing.T) {
		g := NewWithT(t)
		disk := newDisk(t)
		want := layout(t)
		g.Expect(gpt.Write(disk, want)).To(Succeed())
		got, err := gpt.Read(disk)
		g.Expect(err).NotTo(HaveOccurred())
		for i := range got {
			g.Expect(got[i].GUID).NotTo(Equal(gpt.GUID{}))
			got[i].GUID = gpt.GUID{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("table (-want +got):\n%s", diff)
		}
	})
	t.Run("When a disk is empty, it should return ErrNoTable", func(t *testing.T) {
		_, err := gpt.Read(newDisk(t))
		NewWithT(t).Expect(err).To(MatchError(gpt.ErrNoTable))
	})
	t.Run("When an entry is damaged, it should return ErrNoTable", func(t *testing.T) {
		g := NewWithT(t)
		disk := newDisk(t)
		g.Expect(gpt.Write(disk, layout(t))).To(Succeed())
		_, err := disk.WriteAt([]byte{0xff}, 2*gpt.SectorSize+33)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = gpt.Read(disk)
		g.Expect(err).To(MatchError(gpt.ErrNoTable))
	})
}

func TestDelete(t *testing.T) {
	g := NewWithT(t)
	disk := newDisk(t)
	g.Expect(gpt.Write(disk, layout(t))).To(Succeed())
	before, err := gpt.Read(disk)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(gpt.Delete(disk, 3)).To(Succeed())
	g.Expect(gpt.Delete(disk, 3)).To(Succeed(), "a partition that is not there is no error")

	after, err := gpt.Read(disk)
	g.Expect(err).NotTo(HaveOccurred())
	if diff := cmp.Diff(before[:2], after); diff != "" {
		t.Errorf("the other partitions changed (-before +after):\n%s", diff)
	}
}

// TestAgainstSgdisk checks that sgdisk accepts our tables, and that we can read its tables.
func TestAgainstSgdisk(t *testing.T) {
	sgdisk, err := exec.LookPath("sgdisk")
	if err != nil {
		t.Skip("sgdisk is not installed")
	}
	g := NewWithT(t)
	disk := newDisk(t)
	g.Expect(gpt.Write(disk, layout(t))).To(Succeed())
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), sgdisk, append(args, disk.Name())...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}

	g.Expect(run("--verify")).To(ContainSubstring("No problems found"))
	run("--delete=3")
	after, err := gpt.Read(disk)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(after)).To(Equal(map[int]string{1: "BIOS-BOOT", 2: "root"}))
	g.Expect(gpt.Delete(disk, 1)).To(Succeed())
	g.Expect(run("--verify")).To(ContainSubstring("No problems found"))
}
