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

// Release is a Kubernetes whose programs are built.
type Release struct {
	// Folder is the folder of bin that holds its program.
	Folder string
	// Version is its version, such as "1.36.3".
	Version string
	// Suffix ends the names of its images in the OCI layout, and of its kubelet in bin/node.
	Suffix string
	// Others is the suffix of the images that a release has which brings nothing but a kubelet; empty for one with images of its own.
	Others string
}

// previous is the suffix of the minor before.
const previous = "-previous"

// Releases returns this build's Kubernetes and, if it is built too, the minor before, from which tests upgrade.
func Releases(ctx context.Context, bin string) ([]Release, error) {
	releases := []Release{{Folder: "kube"}}
	if _, err := os.Stat(filepath.Join(bin, "kube"+previous, "kubelet")); err == nil {
		releases = append(releases, Release{Folder: "kube" + previous, Suffix: previous})
	}
	return versioned(ctx, bin, releases...)
}

// Patch is the patch that follows the release of the minor before. Only nodes come to it, so that it has their programs alone, and not
// hundreds of megabytes of images that nothing would run.
func Patch(ctx context.Context, bin string) (Release, error) {
	const suffix = "-patch"
	releases, err := versioned(ctx, bin, Release{Folder: "kube" + suffix, Suffix: suffix, Others: previous})
	if err != nil {
		return Release{}, err
	}
	return releases[0], nil
}

// versioned asks the programs of releases for their versions.
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

// KubeletVersion asks a kubelet for its version, which it returns without a leading v.
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
