// SPDX-License-Identifier: Apache-2.0

// Package takeover prepares a machine on which MAAS installed Ubuntu to become a CoreOS machine. It checks whether that
// is possible, finds the disk, downloads a live system, and adds the installation to its initramfs.
//
// It starts nothing, and writes only to one folder. docs/design/rhcos-takeover.md describes the next steps, and why an
// administrator does them.
package takeover

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Artifact is a published file.
type Artifact struct {
	Location string `json:"location"`
	// SHA256 is the checksum in lower case hexadecimal.
	SHA256 string `json:"sha256"`
}

// Live is a system that runs from memory.
type Live struct {
	Release string
	Kernel  Artifact
	// Initramfs and RootFS are concatenated. With the root file system in it, the live system needs no network.
	Initramfs, RootFS Artifact
}

// archNames maps Go's architecture names to CoreOS's names.
var archNames = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// FromStream returns the live system of a Go architecture from CoreOS stream metadata. The metadata is the output of
// `openshift-install coreos print-stream-json`, coreos-stream.json in the payload component machine-os-images, or a
// stream of Fedora CoreOS.
func FromStream(stream []byte, arch string) (*Live, error) {
	var metadata struct {
		Architectures map[string]struct {
			Artifacts struct {
				Metal struct {
					Release string `json:"release"`
					Formats struct {
						PXE struct {
							Kernel    Artifact `json:"kernel"`
							Initramfs Artifact `json:"initramfs"`
							RootFS    Artifact `json:"rootfs"`
						} `json:"pxe"`
					} `json:"formats"`
				} `json:"metal"`
			} `json:"artifacts"`
		} `json:"architectures"`
	}
	if err := json.Unmarshal(stream, &metadata); err != nil {
		return nil, fmt.Errorf("reading the stream metadata: %w", err)
	}
	of, ok := metadata.Architectures[archNames[arch]]
	if !ok {
		return nil, fmt.Errorf("the stream has nothing for the architecture %s", arch)
	}
	metal := of.Artifacts.Metal
	live := &Live{cmp.Or(metal.Release, "without a name"), metal.Formats.PXE.Kernel, metal.Formats.PXE.Initramfs, metal.Formats.PXE.RootFS}
	for _, a := range []struct {
		name string
		Artifact
	}{{"kernel", live.Kernel}, {"initramfs", live.Initramfs}, {"rootfs", live.RootFS}} {
		if err := a.complete(); err != nil {
			return nil, fmt.Errorf("the stream's metal artifact pxe.%s for %s: %w", a.name, arch, err)
		}
	}
	return live, nil
}

// complete returns an error if the artifact could not be downloaded and verified.
func (a Artifact) complete() error {
	switch {
	case !strings.HasPrefix(a.Location, "https://") && !strings.HasPrefix(a.Location, "http://"):
		return fmt.Errorf("the location %q is not an http or https URL", a.Location)
	case len(a.SHA256) != 64 || strings.Trim(a.SHA256, "0123456789abcdef") != "":
		return errors.New("it has no sha256 in lower case hexadecimal")
	}
	return nil
}
