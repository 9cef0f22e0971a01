// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/machine/cgroup"
)

// tunables are global kernel settings that a kubelet changes. A machine gets its own files instead, with the values
// that the kubelet requires, so that the host does not change.
var tunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// mountRoot mounts everything below the machine's root folder. It runs in the machine's mount namespace.
func mountRoot(config Config, hierarchies []cgroup.Hierarchy) error {
	root := config.Root()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cutting the machine's mounts from the host's: %w", err)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", root, err)
	}
	if err := mountSystem(config); err != nil {
		return err
	}
	if err := mountKernel(root); err != nil {
		return err
	}
	if config.System != "" {
		if err := mountOwn(root); err != nil {
			return err
		}
	}
	if err := cgroup.Mount(hierarchies, filepath.Join(root, "sys/fs/cgroup")); err != nil {
		return err
	}
	if err := mountDevices(config); err != nil {
		return err
	}
	for _, b := range config.Binds {
		if err := bind(b.Source, config.Path(b.Target), b.Writable); err != nil {
			return err
		}
	}
	return nil
}

// mountSystem mounts the system's programs read-only, with a separate /usr/local for the machine.
func mountSystem(config Config) error {
	names, err := systemFolders(config.system())
	if err != nil {
		return err
	}
	for _, name := range names {
		source := filepath.Join(config.system(), name)
		if info, err := os.Lstat(source); err != nil || !info.IsDir() {
			continue
		}
		if err := bind(source, config.Path(name), false); err != nil {
			return err
		}
	}
	if err := mountUsr(config); err != nil {
		return err
	}
	return bind(config.Path("var/usrlocal"), config.Path("usr/local"), true)
}

// usrFolders must exist in a machine's /usr: pods mount the first, and the second belongs to the machine. A host whose
// kernel has no modules lacks the first.
var usrFolders = []string{"lib/modules", "local"}

// mountUsr mounts the system's /usr, and adds the folders that it lacks as a lower layer.
func mountUsr(config Config) error {
	usr := filepath.Join(config.system(), "usr")
	complete := true
	for _, folder := range usrFolders {
		complete = complete && exists(filepath.Join(usr, folder))
	}
	if complete {
		return bind(usr, config.Path("usr"), false)
	}
	below := filepath.Join(config.Dir, "usr")
	for _, folder := range usrFolders {
		if err := os.MkdirAll(filepath.Join(below, folder), 0o755); err != nil {
			return err
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace
	if err := unix.Mount("overlay", config.Path("usr"), "overlay", unix.MS_RDONLY, "lowerdir="+escape(usr)+":"+escape(below)); err != nil {
		return fmt.Errorf("mounting %s over %s: %w", usr, below, err)
	}
	return nil
}

// mountKernel mounts proc, sysfs and the temporary file systems. Global kernel files are read-only.
func mountKernel(root string) error {
	const plain = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		fstype, target, options string
		flags                   uintptr
	}{
		{"proc", "proc", "", plain},
		{"sysfs", "sys", "", plain},
		{"tmpfs", "run", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.fstype, filepath.Join(root, m.target), m.fstype, m.flags, m.options); err != nil {
			return fmt.Errorf("mounting %s on /%s: %w", m.fstype, m.target, err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "run/lock"), 0o777); err != nil {
		return err
	}
	if err := setReadOnly(filepath.Join(root, "sys"), true); err != nil {
		return err
	}
	for _, path := range []string{filepath.Join(root, "proc/sys"), filepath.Join(root, "proc/sysrq-trigger")} {
		if !exists(path) {
			continue // Not every kernel has both.
		}
		if err := bind(path, path, false); err != nil {
			return err
		}
	}
	// The net folder belongs to the machine's network namespace.
	if err := bind(filepath.Join(root, "proc/sys/net"), filepath.Join(root, "proc/sys/net"), true); err != nil {
		return err
	}
	return maskTunables(root)
}

func maskTunables(root string) error {
	dir := filepath.Join(root, "run/machine/sysctl")
	for name, value := range tunables {
		target, own := filepath.Join(root, "proc/sys", name), filepath.Join(dir, name)
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(own, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := bind(own, target, true); err != nil {
			return err
		}
	}
	return nil
}

// bind mounts source, with all mounts below it, at target.
func bind(source, target string, writable bool) error {
	if err := makeTarget(source, target); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	return setReadOnly(target, !writable)
}

// makeTarget creates the file or folder on which source is mounted.
func makeTarget(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(target, 0o755)
	}
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, nil, 0o644)
}

func setReadOnly(mountPoint string, readOnly bool) error {
	attr := &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if readOnly {
		attr = &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, mountPoint, unix.AT_RECURSIVE, attr); err != nil {
		return fmt.Errorf("making %s read-only %t: %w", mountPoint, readOnly, err)
	}
	return nil
}
