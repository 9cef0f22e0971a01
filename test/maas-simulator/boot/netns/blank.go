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

// blank is the file that a machine without a system on its disks has instead of them. It holds the power: on, its firmware searches for
// something to start, and finds nothing.
func (b *Backend) blank(systemID string) string { return filepath.Join(b.dir(systemID), "blank") }

// wipe forgets what the disks hold, as an installer does that was cut off.
func (b *Backend) wipe(ctx context.Context, systemID string) error {
	if err := b.Erase(ctx, systemID); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir(systemID), 0o755); err != nil {
		return fmt.Errorf("wiping the disks of machine %s: %w", systemID, err)
	}
	return os.WriteFile(b.blank(systemID), []byte(boot.Off), 0o600)
}

// searches switches a machine that has no system; false when it has one, or was never installed.
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
