// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Hierarchy is a mounted cgroup file system.
type Hierarchy struct {
	// MountPoint is its mount point.
	MountPoint string
	// V2 reports whether it is the unified hierarchy.
	V2 bool
	// Controllers are the controllers of a version 1 hierarchy. A named hierarchy ("name=systemd") has only its name.
	Controllers []string
}

// Hierarchies lists the hierarchies of the host, each once.
func Hierarchies() ([]Hierarchy, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup hierarchies: %w", err)
	}
	hierarchies := parseMountinfo(string(data))
	if len(hierarchies) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted: mount /sys/fs/cgroup")
	}
	return hierarchies, nil
}

// parseMountinfo parses lines such as "31 23 0:26 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu".
func parseMountinfo(mountinfo string) []Hierarchy {
	var hierarchies []Hierarchy
	seen := map[string]bool{}
	for line := range strings.Lines(mountinfo) {
		mount, super, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(mount), strings.Fields(super)
		if len(left) < 5 || len(right) < 3 || (right[0] != "cgroup" && right[0] != "cgroup2") {
			continue
		}
		h := Hierarchy{MountPoint: left[4], V2: right[0] == "cgroup2"}
		if !h.V2 {
			h.Controllers = controllers(right[2])
		}
		if key := strings.Join(h.Controllers, ","); !seen[key] {
			seen[key] = true
			hierarchies = append(hierarchies, h)
		}
	}
	return hierarchies
}

// controllers extracts the controllers from the mount options of a version 1 hierarchy.
func controllers(options string) []string {
	others := []string{"rw", "ro", "xattr", "clone_children", "noprefix", "cpuset_v2_mode", "seclabel"}
	return slices.DeleteFunc(strings.Split(options, ","), func(option string) bool {
		return slices.Contains(others, option) || strings.HasPrefix(option, "release_agent=")
	})
}

// Mount mounts the hierarchies on target, with the layout of the host. In a separate cgroup namespace, a machine sees
// its own cgroup as the root of each. hierarchies are the result of Hierarchies on the host.
func Mount(hierarchies []Hierarchy, target string) error {
	if len(hierarchies) == 1 && hierarchies[0].V2 {
		return mount("cgroup2", target, "")
	}
	if err := mount("tmpfs", target, "mode=755"); err != nil {
		return err
	}
	for _, h := range hierarchies {
		name := filepath.Base(h.MountPoint)
		dir := filepath.Join(target, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("mounting the cgroup hierarchies: %w", err)
		}
		if h.V2 {
			if err := mount("cgroup2", dir, ""); err != nil {
				return err
			}
			continue
		}
		if err := mount("cgroup", dir, strings.Join(h.Controllers, ",")); err != nil {
			return err
		}
		if err := aliases(target, name, h.Controllers); err != nil {
			return err
		}
	}
	return nil
}

// aliases makes "cpu" a symbolic link to "cpu,cpuacct", as programs expect.
func aliases(target, name string, controllers []string) error {
	for _, controller := range controllers {
		if controller == name || strings.HasPrefix(controller, "name=") {
			continue
		}
		if err := os.Symlink(name, filepath.Join(target, controller)); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("mounting the cgroup hierarchies: %w", err)
		}
	}
	return nil
}

func mount(fstype, target, options string) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount(fstype, target, fstype, flags, options); err != nil {
		return fmt.Errorf("mounting %s (%s) on %s: %w", fstype, options, target, err)
	}
	return nil
}
