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

// DefaultCgroupParent is the cgroup below which the machines live when Config names none.
const DefaultCgroupParent = "hypershift-maas"

// DefaultPath is the PATH of a machine's processes when Config.Env sets none. /opt/os is where a machine finds the
// programs of its operating system that the host may lack (containerd, runc, iptables, ...).
const DefaultPath = "/opt/os/usr/local/sbin:/opt/os/usr/sbin:/opt/os/usr/bin:/opt/os/sbin:/opt/os/bin:" + systemPath

// systemPath is the PATH of a machine that has an operating system of its own.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Config says what a machine is made of. It is kept in the machine's folder, so that Lookup finds the machine again.
type Config struct {
	// Name is the name of the machine's network namespace and of its cgroup, such as "hs-mgmt".
	Name string `json:"name"`
	// Dir is the machine's folder: its root file system is in Dir/root, its console in Dir/console.log. It must be on
	// a file system that can carry overlay mounts (ext4, xfs, btrfs) if the machine runs containers.
	Dir string `json:"dir"`
	// Hostname is Name if empty.
	Hostname string `json:"hostname,omitempty"`
	// System is the folder of an operating system whose /usr the machine sees, read-only, in place of the host's. Such a
	// machine behaves as one with systemd: its PID 1 runs generators and the units of /usr/lib/systemd/system, it has the
	// programs of package tools, a boot id and a kernel command line of its own, no swap, and it can reboot. What else the
	// system has (/etc) must be in the machine's root file system. Empty: the host's.
	System string `json:"system,omitempty"`
	// Network holds the machine's bridges and links. Zero: loopback only.
	Network network.Config `json:"network"`
	// Binds are files and folders of the host that the machine sees, in addition to /usr.
	Binds []Bind `json:"binds,omitempty"`
	// Disks are image files of the host that the machine sees as block devices.
	Disks []Disk `json:"disks,omitempty"`
	// Env is the environment (KEY=VALUE) of every process of the machine; PATH is DefaultPath unless set here, or what
	// systems set where there is one.
	Env []string `json:"env,omitempty"`
	// CgroupParent is DefaultCgroupParent if empty.
	CgroupParent string `json:"cgroupParent,omitempty"`
	// Boot names the Boot, of those given to Init, that runs before the units are started. Empty: none.
	Boot string `json:"boot,omitempty"`
	// BootData is handed to Boot.
	BootData []byte `json:"bootData,omitempty"`
	// Executable is the program that serves as the machine's PID 1; it must call Init first thing in main. Empty: the
	// caller's own.
	Executable string `json:"executable,omitempty"`
}

// Bind is a file or folder of the host that the machine sees.
type Bind struct {
	// Source is an absolute path on the host.
	Source string `json:"source"`
	// Target is an absolute path in the machine; it is made if it does not exist.
	Target string `json:"target"`
	// Writable lets the machine write to it. Zero: read-only.
	Writable bool `json:"writable,omitempty"`
}

// Disk is an image file that the machine sees as the block device /dev/NAME, and its partitions as /dev/NAME1 and so on.
type Disk struct {
	// Name is that of the device, such as "sda".
	Name string `json:"name"`
	// Image is an absolute path on the host.
	Image string `json:"image"`
}

// system is where the machine's /usr comes from.
func (c Config) system() string {
	if c.System == "" {
		return "/"
	}
	return c.System
}

// Root is the folder on the host that is the machine's root file system.
func (c Config) Root() string { return filepath.Join(c.Dir, "root") }

// Path is where the machine's file is found on the host. It knows nothing of Binds.
func (c Config) Path(inMachine string) string {
	return filepath.Join(c.Root(), path.Clean("/"+inMachine))
}

// Console is the file that receives what the machine's PID 1 prints.
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
