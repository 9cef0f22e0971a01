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

// namespaceDir is where named network namespaces are.
const namespaceDir = "/run/netns"

// pluggedMachines are the machines whose cable ends in the management machine: its interface there has the machine's name.
// They are known by that even when their folders are gone.
func pluggedMachines() ([]string, error) {
	var links []netlink.Link
	err := network.Do(env.Namespace, func() (err error) {
		links, err = netlink.LinkList()
		return err
	})
	// EINVAL: a file that a crash left where the namespace was to be.
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

// removeKernelObjects removes what machines of these names have of the kernel, with all processes.
func removeKernelObjects(ctx context.Context, machines []string) error {
	errs := []error{killInNamespace(env.Namespace)}
	for _, name := range machines {
		errs = append(errs, cgroup.Remove(ctx, filepath.Join(machine.DefaultCgroupParent, name)), network.RemoveNamespace(name))
	}
	return errors.Join(append(errs, removeLink(env.HostLink))...)
}

// killInNamespace ends every process of the network namespace: supervised ones are in no machine's cgroup.
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
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone already
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
	// The other end may just have taken it away with its namespace.
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("removing network interface %s: %w", name, err)
	}
	return nil
}
