// SPDX-License-Identifier: Apache-2.0

// Command release writes the files from which clusterctl installs the provider.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/manifests"
)

func main() {
	var release manifests.Release
	var output string
	pflag.StringVar(&release.Image, "image", "", "Image of the provider.")
	pflag.StringVar(&release.Version, "version", "", "Version of the release, such as v1.2.3.")
	pflag.StringVar(&output, "output", "dist", "Folder to write to.")
	pflag.Parse()
	if err := write(release, output); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func write(release manifests.Release, folder string) error {
	files, err := release.Render()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making folder %s: %w", folder, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
