// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Release is a Kubernetes whose programs are built.
type Release struct {
	// Folder is the folder of bin that holds its program.
	Folder string
	// Version is its version, such as "1.36.3".
	Version string
	// Suffix ends the names of its images in the OCI layout, and of its kubelet in bin/node.
	Suffix string
}

// Releases are those of this build's Kubernetes and of the minor before, from which people upgrade.
func Releases(ctx context.Context, bin string) ([]Release, error) {
	releases := []Release{{Folder: "kube"}, {Folder: "kube-previous", Suffix: "-previous"}}
	for i := range releases {
		version, err := KubeletVersion(ctx, filepath.Join(bin, releases[i].Folder, "kubelet"))
		if err != nil {
			return nil, err
		}
		releases[i].Version = version
	}
	return releases, nil
}

// KubeletVersion asks a kubelet for its version, which it returns without a leading v.
func KubeletVersion(ctx context.Context, kubelet string) (string, error) {
	out, err := exec.CommandContext(ctx, kubelet, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s, which `make images` builds, for its version: %w", kubelet, err)
	}
	version, found := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes v")
	if !found {
		return "", fmt.Errorf("%s says its version is %q: build it with make images", kubelet, strings.TrimSpace(string(out)))
	}
	return version, nil
}
