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

// mounts are where the running system lies. What else is mounted may lie elsewhere, and is left alone.
var mounts = []string{"/", "/boot", "/boot/efi"}

const byID = "/dev/disk/by-id"

// Disk is the disk that the machine's system lies on and its firmware starts from, by the name that it has under another kernel too: its
// path below /dev/disk/by-id. It refuses a system that lies on several disks, or on what is made of disks (LVM, RAID, bcache, multipath):
// writing one of them would leave the others with the rest of it.
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

// mounted is the device, as major:minor, of each mount point; of those above each other, the last.
func mounted(h *host.Host) (map[string]string, error) {
	text, err := h.Read("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	devices := map[string]string{}
	for line := range strings.Lines(string(text)) {
		// proc_pid_mountinfo(5): id, parent, major:minor, root, mount point.
		if fields := strings.Fields(line); len(fields) > 5 {
			devices[fields[4]] = fields[2]
		}
	}
	return devices, nil
}

// diskOf is the kernel's name of the disk that has the device, which must be that disk or a partition of it.
func diskOf(h *host.Host, device string) (string, error) {
	path, err := filepath.EvalSymlinks(h.Path("/sys/dev/block/" + device))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("its file system lies on no disk of its own (device %s): choose the storage layout `flat` in MAAS", device)
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

// whole refuses a name that is not that of a disk: of nothing, or of a partition.
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

// worldwide begin the names that udev takes from the disk's own identity, not from its maker's words: those last.
var worldwide = []string{"wwn-", "nvme-eui.", "nvme-uuid."}

// stableName is the best of the names that udev gave to the disk.
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
	best := links[0] // os.ReadDir sorts.
	if i := slices.IndexFunc(links, isWorldwide); i >= 0 {
		best = links[i]
	}
	return byID + "/" + best, nil
}
