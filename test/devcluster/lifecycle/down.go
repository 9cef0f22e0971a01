package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/network"
)

// machinePrefix begins the names of the network namespaces of all machines.
const machinePrefix = "hs-"

// Down removes every trace of the environment. What is not there is no error, so it also clears up after a crash or an
// interruption at any point.
func (e *Environment) Down(ctx context.Context) error {
	entries, err := os.ReadDir(e.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return e.removeKernelObjects(ctx)
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(e.Dir, marker)); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s was not made by devcluster (it has no file %s): nothing was removed", e.Dir, marker)
	}
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	// First what would start machines again.
	if err := e.simulator().Stop(ctx); err != nil {
		return err
	}
	if err := e.killMachines(ctx); err != nil {
		return err
	}
	if err := e.removeKernelObjects(ctx); err != nil {
		return err
	}
	return e.removeFiles()
}

// killMachines needs no orderly shutdown: nothing of the machines is kept.
func (e *Environment) killMachines(ctx context.Context) error {
	dirs, err := filepath.Glob(filepath.Join(e.Machines(), "*"))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, dir := range append(dirs, e.Management()) {
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

// removeKernelObjects removes what no machine's folder knows of any more.
func (e *Environment) removeKernelObjects(ctx context.Context) error {
	errs := []error{cgroup.Remove(ctx, machine.DefaultCgroupParent), removeLink(env.HostLink)}
	namespaces, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, namespace := range namespaces {
		if strings.HasPrefix(namespace.Name(), machinePrefix) {
			errs = append(errs, network.RemoveNamespace(namespace.Name()))
		}
	}
	return errors.Join(errs...)
}

func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for network interface %s: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("removing network interface %s: %w", name, err)
	}
	return nil
}

// removeFiles never deletes through a mount: what is mounted below the folder is unmounted first.
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

// removeDir deletes the marker last, so that an interrupted removal can be taken up again.
func (e *Environment) removeDir() error {
	entries, err := os.ReadDir(e.Dir)
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

// unescapeMount undoes how the kernel writes blanks in paths.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
