// SPDX-License-Identifier: Apache-2.0

// Package cgroup creates, joins, empties and removes a control group in every hierarchy of the host: version 1,
// version 2 or both. It also mounts the hierarchies in a machine.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const pollInterval = 10 * time.Millisecond

// delegated lists the controllers that a machine with a kubelet needs on a version 2 host.
var delegated = []string{"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}

// Create creates the cgroup and its parents. On a version 2 host the parents must not have processes, except the root
// of the host.
func Create(name string) error { return create(name, true) }

// Evacuate creates the cgroup and moves the given processes from its parent into it. A parent must move its processes
// before it can delegate controllers to other cgroups.
func Evacuate(name string, pids ...int) error {
	if err := create(name, false); err != nil {
		return err
	}
	for _, pid := range pids {
		if err := Join(name, pid); err != nil {
			return err
		}
	}
	return nil
}

func create(name string, delegating bool) error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		if err := h.create(name, delegating); err != nil {
			return fmt.Errorf("making cgroup %s in %s: %w", name, h.MountPoint, err)
		}
	}
	return nil
}

// Join moves a process into the cgroup.
func Join(name string, pid int) error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		file := filepath.Join(h.MountPoint, name, "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("moving process %d into cgroup %s: %w", pid, name, err)
		}
	}
	return nil
}

// Signal sends a signal to every process of the cgroup and of its descendants.
func Signal(name string, signal unix.Signal) error {
	pids, err := Processes(name)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("signalling process %d of cgroup %s: %w", pid, name, err)
		}
	}
	return nil
}

// Processes lists the processes of the cgroup and of its descendants; none if the cgroup does not exist.
func Processes(name string) ([]int, error) {
	hierarchies, err := Hierarchies()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, h := range hierarchies {
		err := walk(filepath.Join(h.MountPoint, name), func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for _, field := range strings.Fields(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing the processes of cgroup %s: %w", name, err)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// Remove kills every process of the cgroup and of its descendants. It then removes these cgroups, and the parents that
// this leaves empty. It ignores a cgroup that does not exist.
func Remove(ctx context.Context, name string) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := Signal(name, unix.SIGKILL); err != nil {
			return err
		}
		err := rmdir(name)
		if err == nil || !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("removing cgroup %s: %w (%w)", name, err, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// rmdir removes a cgroup without processes, or returns EBUSY.
func rmdir(name string) error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range hierarchies {
		var dirs []string
		errs = append(errs, walk(filepath.Join(h.MountPoint, name), func(dir string) error {
			dirs = append(dirs, dir)
			return nil
		}))
		for _, dir := range slices.Backward(dirs) {
			if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
				errs = append(errs, fmt.Errorf("removing cgroup %s: %w", dir, err))
			}
		}
		if parent := filepath.Dir(name); parent != "." && parent != "/" {
			_ = unix.Rmdir(filepath.Join(h.MountPoint, parent)) // The parent may contain other cgroups.
		}
	}
	return errors.Join(errs...)
}

// walk visits a folder and its subfolders, parents first. Folders may be removed concurrently.
func walk(dir string, visit func(dir string) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = visit(path)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		return err
	})
}

// create creates the cgroup, and retries. Another process that removes the parent's last other child may remove the
// parent concurrently, even while one of its files is open.
func (h Hierarchy) create(name string, delegating bool) error {
	var err error
	for range 10 {
		if err = h.createOnce(name, delegating); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	return err
}

func (h Hierarchy) createOnce(name string, delegating bool) error {
	dir := h.MountPoint
	for part := range strings.SplitSeq(filepath.Clean(name), "/") {
		if h.V2 && delegating {
			if err := delegate(dir); err != nil {
				return err
			}
		}
		parent := dir
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if slices.Contains(h.Controllers, "cpuset") && !h.V2 {
			if err := inheritCPUSet(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate delegates the available controllers of dir to its children.
func delegate(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(available)) {
		if !slices.Contains(delegated, controller) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("handing controller %s down: %w", controller, err)
		}
	}
	return nil
}

// inheritCPUSet sets what a new cgroup of version 1 needs before it can contain a process.
func inheritCPUSet(parent, child string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(child, file))
		if err != nil {
			return err
		}
		if len(strings.TrimSpace(string(own))) > 0 {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0); err != nil {
			return err
		}
	}
	return nil
}
