// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/network"
)

// namespaceDir is the folder of named network namespaces.
const namespaceDir = "/run/netns"

// pluggedMachines returns the machines that have a link to the management machine. The interface there has the
// machine's name, so this finds machines even if their folders are gone.
func pluggedMachines() ([]string, error) {
	var links []netlink.Link
	err := network.Do(env.Namespace, func() (err error) {
		links, err = netlink.LinkList()
		return err
	})
	// EINVAL: a crash left a file in place of the namespace.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the interfaces of network namespace %s: %w", env.Namespace, err)
	}
	var machines []string
	for _, link := range links {
		name := link.Attrs().Name
		if strings.HasPrefix(name, "hs-") && name != env.HostLinkPeer {
			machines = append(machines, name)
		}
	}
	return machines, nil
}

// removeKernelObjects removes the processes, and the kernel objects, of machines with these names.
func removeKernelObjects(ctx context.Context, machines []string) error {
	errs := []error{killInNamespace(env.Namespace)}
	for _, name := range machines {
		errs = append(errs, cgroup.Remove(ctx, filepath.Join(machine.DefaultCgroupParent, name)), network.RemoveNamespace(name))
	}
	return errors.Join(append(errs, removeLink(env.HostLink), network.RemoveFolder())...)
}

// killInNamespace kills every process in the network namespace: supervised processes are in no machine's cgroup.
func killInNamespace(name string) error {
	var wanted unix.Stat_t
	if err := unix.Stat(filepath.Join(namespaceDir, name), &wanted); err != nil {
		return nil //nolint:nilerr // no such namespace, no process in it
	}
	processes, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return err
	}
	for _, file := range processes {
		var found unix.Stat_t
		if err := unix.Stat(file, &found); err != nil || found.Ino != wanted.Ino || found.Dev != wanted.Dev {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err == nil && pid != os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL) // The process may already have ended.
		}
	}
	return nil
}

func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for network interface %s: %w", name, err)
	}
	// The other end may have just removed it together with its namespace.
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing network interface %s: %w", name, err)
	}
	return nil
}
