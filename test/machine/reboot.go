// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// exitReboot is the exit status of the manager if its machine must reboot.
const exitReboot = 86

// snapshot records what a machine has before it boots, so that a reboot can remove what was added later. The
// namespaces and PID 1 stay during a reboot.
type snapshot struct {
	mounts, links []string
}

func takeSnapshot() (snapshot, error) {
	mounts, err := mountPoints()
	if err != nil {
		return snapshot{}, err
	}
	links, err := linkNames()
	return snapshot{mounts: mounts, links: links}, err
}

// restore ends every process and removes mounts, links, rules and temporary files.
func (s snapshot) restore(ctx context.Context) error {
	_ = unix.Kill(-1, unix.SIGKILL) // There may be no processes.
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break // No process is left.
		}
	}
	if err := errors.Join(s.unmount(), s.unlink(ctx), clearRun("/run")); err != nil {
		return fmt.Errorf("rebooting: %w", err)
	}
	return writeOwn("/")
}

func mountPoints() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(data)) {
		points = append(points, strings.NewReplacer(`\040`, " ", `\011`, "\t").Replace(strings.Fields(line)[4]))
	}
	return points, nil
}

// unmount removes the mounts that were added, in reverse order. Several may have the same mount point.
func (s snapshot) unmount() error {
	now, err := mountPoints()
	if err != nil {
		return err
	}
	for _, point := range later(s.mounts, now) {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmounting %s: %w", point, err)
		}
	}
	return nil
}

// later returns the items of now that are not in before, in reverse order. An item that occurs more often in now than
// in before is returned once for each additional occurrence.
func later(before, now []string) []string {
	count := map[string]int{}
	for _, item := range before {
		count[item]++
	}
	var more []string
	for _, item := range now {
		if count[item]--; count[item] < 0 {
			more = append(more, item)
		}
	}
	slices.Reverse(more)
	return more
}

func linkNames() ([]string, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, link := range links {
		names = append(names, link.Name)
	}
	return names, nil
}

// unlink deletes the links that were added later, and the addresses and rules of the other links.
func (s snapshot) unlink(ctx context.Context) error {
	now, err := linkNames()
	if err != nil {
		return err
	}
	for _, name := range later(s.links, now) {
		_ = exec.CommandContext(ctx, "ip", "link", "delete", name).Run() // The other end of a pair may already be deleted.
	}
	for _, name := range s.links {
		if name == "lo" {
			continue
		}
		if out, err := exec.CommandContext(ctx, "ip", "address", "flush", "dev", name).CombinedOutput(); err != nil {
			return fmt.Errorf("flushing %s: %w: %s", name, err, out)
		}
	}
	for _, program := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{"filter", "nat", "mangle", "raw"} {
			for _, action := range []string{"-F", "-X"} {
				_ = exec.CommandContext(ctx, program, "-t", table, action).Run() // A machine without rules may lack the table.
			}
		}
	}
	return nil
}

// clearRun empties dir, except for files that belong to the machine itself.
func clearRun(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == "machine" || entry.Name() == "lock" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
