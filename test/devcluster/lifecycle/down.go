// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
)

// Down removes every trace of the environment. It ignores missing parts, so it also cleans up after a crash or an
// interruption at any point, and after a user deleted the folder.
func (e *Environment) Down(ctx context.Context) error {
	if err := e.mayRemove(); err != nil {
		return err
	}
	unlock, err := e.lockIfThere()
	if err != nil {
		return err
	}
	defer unlock()
	// First stop the process that would restart machines.
	if err := e.simulator().Stop(ctx); err != nil {
		return err
	}
	machines, err := pluggedMachines()
	if err != nil {
		return err
	}
	if err := e.killMachines(ctx); err != nil {
		return err
	}
	if err := removeKernelObjects(ctx, append(machines, env.Namespace)); err != nil {
		return err
	}
	if err := e.removeFiles(); err != nil {
		return err
	}
	return disown()
}

// mayRemove rejects the removal of anything that does not belong to this environment. Such things are a folder with
// other content, and the machines of an environment in another folder.
func (e *Environment) mayRemove() error {
	if err := e.checkOwner(); err != nil {
		return err
	}
	entries, err := os.ReadDir(e.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 && !e.ours() {
		return fmt.Errorf("%s was not made by devcluster (it has no file %s): nothing was removed", e.Dir, marker)
	}
	return nil
}

func (e *Environment) lockIfThere() (unlock func(), err error) {
	if !e.claimed() {
		return func() {}, nil
	}
	return e.lock()
}

// killMachines kills the machines without a shutdown: none of their data is kept.
func (e *Environment) killMachines(ctx context.Context) error {
	dirs, err := filepath.Glob(filepath.Join(e.Machines(), "*"))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, n := range env.Nodes(env.MaxNodes) {
		dirs = append(dirs, e.Node(n))
	}
	for _, dir := range dirs {
		group.Go(func() error {
			found, err := machine.Lookup(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			return found.Kill(ctx)
		})
	}
	return group.Wait()
}

// removeFiles never deletes through a mount: it first unmounts everything below the folder.
func (e *Environment) removeFiles() error {
	mounts, err := mountsBelow(e.Dir)
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting %s: %w", mount, err)
		}
	}
	if mounts, err = mountsBelow(e.Dir); err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s is still mounted: unmount it and try again", mounts[0])
	}
	return e.removeDir()
}

// removeDir deletes the marker last, so that an interrupted removal can be continued.
func (e *Environment) removeDir() error {
	entries, err := os.ReadDir(e.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(filepath.Join(e.Dir, entry.Name())); err != nil {
			return fmt.Errorf("deleting the environment's files: %w", err)
		}
	}
	return os.RemoveAll(e.Dir)
}

// mountsBelow lists the mount points in dir, deepest first.
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var mounts []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(unescapeMount(fields[4])+"/", dir+"/") {
			mounts = append([]string{unescapeMount(fields[4])}, mounts...)
		}
	}
	return mounts, nil
}

// unescapeMount reverts the kernel's escaping of special characters in paths.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
