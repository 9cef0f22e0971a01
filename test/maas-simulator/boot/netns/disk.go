// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/machine/gpt"
)

// image contains the files that the operating system adds to an empty root file system.
//
//go:embed all:image
var image embed.FS

func unpackImage(root string) error {
	files, err := fs.Sub(image, "image")
	if err != nil {
		return err
	}
	return os.CopyFS(root, files)
}

func diskPath(dir, name string) string { return filepath.Join(dir, name+".img") }

// helperContent is written to the fifth partition, so that a test can verify that the content is deleted too.
const helperContent = "helper root file system: makes MAAS see the machine as deployed, then starts Ignition\n"

// customParts is the layout of a CoreOS disk image that is adapted for MAAS. Its fifth partition has a helper root file
// system, which the node's configuration removes.
var customParts = []gpt.Part{
	{Name: "BIOS-BOOT", Type: gpt.BIOSBoot, MiB: 1},
	{Name: "EFI-SYSTEM", Type: gpt.EFI, MiB: 127},
	{Name: "boot", Type: gpt.Linux, MiB: 384},
	{Name: "root", Type: gpt.Linux},
	{Name: "maas-helper", Type: gpt.Linux, MiB: 64},
}

// plainParts is the layout that curtin creates for the images that MAAS ships.
var plainParts = []gpt.Part{
	{Name: "EFI-SYSTEM", Type: gpt.EFI, MiB: 512},
	{Name: "root", Type: gpt.Linux},
}

// writeDisks creates new, sparse disk images. The first disk gets the system.
func writeDisks(dir string, spec boot.Spec) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, disk := range spec.Disks {
		if err := writeDisk(diskPath(dir, disk.Name), disk.Bytes, i == 0, spec.OSystem == "custom"); err != nil {
			return fmt.Errorf("disk %s: %w", disk.Name, err)
		}
	}
	return nil
}

func writeDisk(path string, size int64, system, custom bool) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return err
	}
	if !system {
		return nil
	}
	parts := plainParts
	if custom {
		parts = customParts
	}
	partitions, err := gpt.Layout(size, parts)
	if err != nil {
		return err
	}
	if err := gpt.Write(file, partitions); err != nil {
		return err
	}
	if custom {
		if _, err := file.WriteAt([]byte(helperContent), partitions[4].Offset()); err != nil {
			return err
		}
	}
	return file.Close()
}
