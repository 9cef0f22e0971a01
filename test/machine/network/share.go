// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// shareFolder makes the folder of namespaces a shared mount of its own, as `ip netns add` does with a folder that is
// none. Otherwise that command would bind the folder over itself. The namespaces beneath could then not be removed.
func shareFolder() error {
	if err := os.MkdirAll(namespaceDir, 0o755); err != nil {
		return err
	}
	folder, err := os.Open(namespaceDir)
	if err != nil {
		return err
	}
	defer folder.Close()
	// Two processes at the same time would mount the folder twice.
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", namespaceDir, err)
	}
	err = unix.Mount("", namespaceDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := unix.Mount(namespaceDir, namespaceDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s over itself: %w", namespaceDir, err)
	}
	return unix.Mount("", namespaceDir, "none", unix.MS_SHARED|unix.MS_REC, "")
}

// RemoveFolder ends the mount of the folder of namespaces if there is no namespace any more. EnsureNamespace mounts it
// again.
func RemoveFolder() error {
	left, err := os.ReadDir(namespaceDir)
	if errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing network namespaces: %w", err)
	}
	err = unix.Unmount(namespaceDir, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting %s: %w", namespaceDir, err)
	}
	return nil
}
