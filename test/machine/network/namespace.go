// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespaceDir is the folder of named network namespaces. It is the one of iproute2, so that `ip netns` lists them.
const namespaceDir = "/run/netns"

func namespacePath(name string) string { return filepath.Join(namespaceDir, name) }

// EnsureNamespace creates the named network namespace, with its loopback device up, if it does not exist.
func EnsureNamespace(name string) error {
	if isNamespace(namespacePath(name)) {
		return nil
	}
	if err := RemoveNamespace(name); err != nil {
		return err
	}
	if err := shareFolder(); err != nil {
		return fmt.Errorf("making network namespace %s (this needs root): %w", name, err)
	}
	if err := os.WriteFile(namespacePath(name), nil, 0o444); err != nil {
		return fmt.Errorf("making network namespace %s: %w", name, err)
	}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", namespacePath(name), "", unix.MS_BIND, "")
	})
	if err != nil {
		return fmt.Errorf("making network namespace %s (this needs root): %w", name, err)
	}
	return loopbackUp(name)
}

// RemoveNamespace removes the named network namespace, if it exists. The kernel removes its interfaces with the last
// process in it.
func RemoveNamespace(name string) error {
	path := namespacePath(name)
	err := unix.Unmount(path, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing network namespace %s: %w", name, err)
	}
	return nil
}

// Do runs f in the named network namespace; empty means the caller's. Processes that f starts run in it too. f must not
// leave goroutines that rely on the namespace.
func Do(name string, f func() error) error {
	if name == "" {
		return f()
	}
	return onThread(func() error {
		file, err := os.Open(namespacePath(name))
		if err != nil {
			return fmt.Errorf("entering network namespace %s: %w", name, err)
		}
		defer file.Close()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering network namespace %s: %w", name, err)
		}
		return f()
	})
}

// onThread runs f on a separate operating system thread, which ends with f: f may change the thread's namespaces.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		defer close(done)
		runtime.LockOSThread() // The thread is never unlocked: the runtime ends it with the goroutine.
		done <- f()
	}()
	err, returned := <-done
	if !returned {
		return errors.New("the function ended its goroutine") // A failed assertion of a test does this.
	}
	return err
}

func isNamespace(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}
