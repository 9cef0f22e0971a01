// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
)

// blank returns the path of a file that marks a machine without a system on its disks. The file contains the power
// state. While such a machine is on, its firmware searches for a system and finds none.
func (b *Backend) blank(systemID string) string { return filepath.Join(b.dir(systemID), "blank") }

// wipe deletes the content of the disks, like an interrupted installation.
func (b *Backend) wipe(ctx context.Context, systemID string) error {
	if err := b.Erase(ctx, systemID); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir(systemID), 0o755); err != nil {
		return fmt.Errorf("wiping the disks of machine %s: %w", systemID, err)
	}
	return os.WriteFile(b.blank(systemID), []byte(boot.Off), 0o600)
}

// searches sets the power state of a machine without a system. It returns false if the machine has a system or was
// never installed.
func (b *Backend) searches(systemID string, power boot.State) (bool, error) {
	_, err := os.Stat(b.blank(systemID))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, os.WriteFile(b.blank(systemID), []byte(power), 0o600)
}
