// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/machine"
)

// isCloud reports whether MAAS ships the image, which then contains cloud-init.
func isCloud(spec boot.Spec) bool { return spec.OSystem == "ubuntu" || spec.OSystem == "debian" }

// installCloud installs the image as curtin does: it unpacks the image and writes the machine's configuration files.
func (b *Backend) installCloud(ctx context.Context, spec boot.Spec) error {
	if _, err := os.Stat(filepath.Join(b.CloudOS, "usr/bin/cloud-init")); err != nil {
		return fmt.Errorf("the image %s/%s is missing: %w; build it with make cloud-os", spec.OSystem, spec.Series, err)
	}
	root := filepath.Join(b.dir(spec.SystemID), "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	// /usr is shared and read-only. cp keeps modes and owners.
	for _, name := range []string{"etc", "var"} {
		if out, err := exec.CommandContext(ctx, "cp", "-a", filepath.Join(b.CloudOS, name), root).CombinedOutput(); err != nil {
			return fmt.Errorf("unpacking the image: %w: %s", err, out)
		}
	}
	files, err := curtinFiles(spec)
	if err != nil {
		return err
	}
	for path, file := range files {
		target := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, []byte(file.content), file.mode); err != nil {
			return err
		}
	}
	return nil
}

// bootCloud configures the resolver in place of systemd-resolved. Systemd units do the rest, cloud-init first.
func bootCloud(_ context.Context, system *machine.System) error {
	var spec boot.Spec
	if err := json.Unmarshal(system.Config.BootData, &spec); err != nil {
		return fmt.Errorf("reading the machine's description: %w", err)
	}
	return configureResolver(spec)
}
