// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/hypershift/node-agent/host"
)

// mounts lists the mount points of the running system. Other mounts may be on other disks, which are not touched.
var mounts = []string{"/", "/boot", "/boot/efi"}

const byID = "/dev/disk/by-id"

// Disk returns the disk of the running system, from which the firmware boots. The result is a path below
// /dev/disk/by-id, which does not depend on the kernel. It rejects a system on several disks, or on a combined device
// (LVM, RAID, bcache, multipath). Overwriting only one of the disks would leave parts of the old system on the others.
func Disk(h *host.Host) (string, error) {
	devices, err := mounted(h)
	if err != nil {
		return "", err
	}
	found, at := "", ""
	for _, mount := range mounts {
		device, ok := devices[mount]
		if !ok {
			continue
		}
		disk, err := diskOf(h, device)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", mount, err)
		case found != "" && disk != found:
			return "", fmt.Errorf("%s lies on %s, and %s on %s: choose a storage layout with one disk in MAAS", at, found, mount, disk)
		}
		found, at = disk, mount
	}
	if found == "" {
		return "", errors.New("/proc/self/mountinfo names no root file system")
	}
	return stableName(h, found)
}

// mounted returns the device of each mount point, as major:minor. The last mount at a mount point counts.
func mounted(h *host.Host) (map[string]string, error) {
	text, err := h.Read("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	devices := map[string]string{}
	for line := range strings.Lines(string(text)) {
		// proc_pid_mountinfo(5): ID, parent, major:minor, root, mount point.
		if fields := strings.Fields(line); len(fields) > 5 {
			devices[fields[4]] = fields[2]
		}
	}
	return devices, nil
}

// diskOf returns the kernel name of the disk of a device, which must be a disk or a partition.
func diskOf(h *host.Host, device string) (string, error) {
	path, err := filepath.EvalSymlinks(h.Path("/sys/dev/block/" + device))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("its file system is not on a single disk (device %s): choose the storage layout `flat` in MAAS", device)
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(path, "partition")); err == nil {
		path = filepath.Dir(path)
	}
	name := filepath.Base(path)
	below, err := os.ReadDir(filepath.Join(path, "slaves"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(below) > 0 {
		return "", fmt.Errorf("it lies on %s, which is made of %s: choose the storage layout `flat` in MAAS", name, strings.Join(names(below), ", "))
	}
	return name, nil
}

func names(entries []os.DirEntry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// whole returns an error if the path is missing or is a partition.
func whole(h *host.Host, disk string) error {
	target, err := os.Readlink(h.Path(disk))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no disk %s: `ls %s` lists them", disk, byID)
	}
	if err != nil {
		return err
	}
	if h.Exists("/sys/class/block/" + filepath.Base(target) + "/partition") {
		return fmt.Errorf("%s is a partition: name the disk that it is on", disk)
	}
	return nil
}

// worldwide lists the prefixes of names that udev derives from the unique ID of the disk. They are more stable than
// names that contain the vendor's text.
var worldwide = []string{"wwn-", "nvme-eui.", "nvme-uuid."}

// stableName returns the most stable of the names that udev gave to the disk.
func stableName(h *host.Host, disk string) (string, error) {
	entries, err := os.ReadDir(h.Path(byID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var links []string
	for _, link := range names(entries) {
		target, err := os.Readlink(filepath.Join(h.Path(byID), link))
		if err == nil && filepath.Base(target) == disk && !strings.HasPrefix(link, "lvm-pv-") {
			links = append(links, link)
		}
	}
	if len(links) == 0 {
		return "", fmt.Errorf("%s has no name below %s: its name under another kernel is not known, and another disk may be called %s there", disk, byID, disk)
	}
	isWorldwide := func(link string) bool {
		return slices.ContainsFunc(worldwide, func(prefix string) bool { return strings.HasPrefix(link, prefix) })
	}
	best := links[0] // os.ReadDir returns sorted names.
	if i := slices.IndexFunc(links, isWorldwide); i >= 0 {
		best = links[i]
	}
	return byID + "/" + best, nil
}
