// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/openshift/hypershift/test/machine/network"
)

// DefaultCgroupParent is the parent cgroup of the machines if Config has none.
const DefaultCgroupParent = "hypershift-maas"

// DefaultPath is the PATH of a machine's processes if Config.Env has none. /opt/os contains the programs of the
// machine's operating system that the host may lack (containerd, runc, iptables, ...).
const DefaultPath = "/opt/os/usr/local/sbin:/opt/os/usr/sbin:/opt/os/usr/bin:/opt/os/sbin:/opt/os/bin:" + systemPath

// systemPath is the PATH of a machine with its own operating system.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Config describes a machine. It is stored in the machine's folder, so that Lookup finds the machine again.
type Config struct {
	// Name is the name of the machine's network namespace and of its cgroup, such as "hs-mgmt".
	Name string `json:"name"`
	// Dir is the machine's folder: its root file system is in Dir/root, its console in Dir/console.log. If the machine
	// runs containers, it must be on a file system that supports overlay mounts (ext4, xfs, btrfs).
	Dir string `json:"dir"`
	// Hostname is Name if empty.
	Hostname string `json:"hostname,omitempty"`
	// System is the folder of an operating system whose /usr the machine uses, read-only, instead of the host's; empty
	// means the host's. Such a machine behaves like one with systemd. Its PID 1 runs generators and the units of
	// /usr/lib/systemd/system. It has the programs of package tools, its own boot ID and kernel command line, no swap, and
	// it can reboot. Other parts of the system (/etc) must be in the machine's root file system.
	System string `json:"system,omitempty"`
	// Network describes the machine's bridges and links. The zero value has only the loopback device.
	Network network.Config `json:"network"`
	// Binds are files and folders of the host that are mounted into the machine, in addition to /usr.
	Binds []Bind `json:"binds,omitempty"`
	// Disks are image files of the host that are block devices in the machine.
	Disks []Disk `json:"disks,omitempty"`
	// Env is the environment (KEY=VALUE) of every process of the machine. The default PATH is DefaultPath, or systemPath
	// if System is set.
	Env []string `json:"env,omitempty"`
	// CgroupParent is DefaultCgroupParent if empty.
	CgroupParent string `json:"cgroupParent,omitempty"`
	// Boot is the key, in the map passed to Init, of the function that runs before the units are started; empty for
	// none.
	Boot string `json:"boot,omitempty"`
	// BootData is passed to Boot.
	BootData []byte `json:"bootData,omitempty"`
	// Executable is the program that runs as the machine's PID 1; it must call Init first in main. Empty means the
	// caller's own program.
	Executable string `json:"executable,omitempty"`
}

// Bind is a file or folder of the host that is mounted into the machine.
type Bind struct {
	// Source is an absolute path on the host.
	Source string `json:"source"`
	// Target is an absolute path in the machine; it is created if it does not exist.
	Target string `json:"target"`
	// Writable lets the machine write to it; the default is read-only.
	Writable bool `json:"writable,omitempty"`
}

// Disk is an image file that is the block device /dev/NAME in the machine, with partitions /dev/NAME1 and so on.
type Disk struct {
	// Name is the name of the device, such as "sda".
	Name string `json:"name"`
	// Image is an absolute path on the host.
	Image string `json:"image"`
}

// system returns the root of the system that provides the machine's /usr.
func (c Config) system() string {
	if c.System == "" {
		return "/"
	}
	return c.System
}

// Root returns the folder on the host that is the machine's root file system.
func (c Config) Root() string { return filepath.Join(c.Dir, "root") }

// Path returns the path on the host of a file in the machine. It ignores Binds.
func (c Config) Path(inMachine string) string {
	return filepath.Join(c.Root(), path.Clean("/"+inMachine))
}

// Console returns the file with the output of the machine's PID 1.
func (c Config) Console() string { return filepath.Join(c.Dir, "console.log") }

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

func (c Config) validate() error {
	var errs []error
	if !validName.MatchString(c.Name) {
		errs = append(errs, fmt.Errorf("name %q: must be at most 40 lower case letters, digits and dashes", c.Name))
	}
	if !filepath.IsAbs(c.Dir) {
		errs = append(errs, fmt.Errorf("dir %q: must be an absolute path", c.Dir))
	}
	if c.System != "" && !filepath.IsAbs(c.System) {
		errs = append(errs, fmt.Errorf("system %q: must be an absolute path", c.System))
	}
	for _, bind := range c.Binds {
		if !filepath.IsAbs(bind.Source) || !path.IsAbs(bind.Target) {
			errs = append(errs, fmt.Errorf("bind %q to %q: both must be absolute paths", bind.Source, bind.Target))
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Hostname == "" {
		c.Hostname = c.Name
	}
	if c.CgroupParent == "" {
		c.CgroupParent = DefaultCgroupParent
	}
	for _, env := range c.Env {
		if strings.HasPrefix(env, "PATH=") {
			return c
		}
	}
	searched := DefaultPath
	if c.System != "" {
		searched = systemPath
	}
	c.Env = append([]string{"PATH=" + searched}, c.Env...)
	return c
}

func (c Config) cgroup() string { return path.Join(c.CgroupParent, c.Name) }
