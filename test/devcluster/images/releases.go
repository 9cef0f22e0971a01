// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Release is a Kubernetes release whose programs are built.
type Release struct {
	// Folder is the folder in bin with its programs.
	Folder string
	// Version is its version, such as "1.36.3".
	Version string
	// Suffix is the suffix of its images in the OCI layout, and of its kubelet in bin/node.
	Suffix string
	// Others is the suffix of the images that a release uses besides its kubelet; empty for a release with its own
	// images.
	Others string
}

// previous is the suffix of the previous minor.
const previous = "-previous"

// Releases returns this build's Kubernetes and, if it is built, the previous minor, from which tests upgrade.
func Releases(ctx context.Context, bin string) ([]Release, error) {
	releases := []Release{{Folder: "kube"}}
	if _, err := os.Stat(filepath.Join(bin, "kube"+previous, "kubelet")); err == nil {
		releases = append(releases, Release{Folder: "kube" + previous, Suffix: previous})
	}
	return versioned(ctx, bin, releases...)
}

// Patch returns the next patch of the previous minor. Only nodes use it, so it has only their programs, and not
// hundreds of megabytes of unused images.
func Patch(ctx context.Context, bin string) (Release, error) {
	const suffix = "-patch"
	releases, err := versioned(ctx, bin, Release{Folder: "kube" + suffix, Suffix: suffix, Others: previous})
	if err != nil {
		return Release{}, err
	}
	return releases[0], nil
}

// versioned sets the versions of releases, from their programs.
func versioned(ctx context.Context, bin string, releases ...Release) ([]Release, error) {
	for i := range releases {
		version, err := KubeletVersion(ctx, filepath.Join(bin, releases[i].Folder, "kubelet"))
		if err != nil {
			return nil, err
		}
		releases[i].Version = version
	}
	return releases, nil
}

// KubeletVersion returns the version of a kubelet, without a leading v.
func KubeletVersion(ctx context.Context, kubelet string) (string, error) {
	out, err := exec.CommandContext(ctx, kubelet, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w; build it with make images or make test-environment", kubelet, err)
	}
	version, found := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes v")
	if !found {
		return "", fmt.Errorf("%s says its version is %q: build it with make images or make test-environment", kubelet, strings.TrimSpace(string(out)))
	}
	return version, nil
}
