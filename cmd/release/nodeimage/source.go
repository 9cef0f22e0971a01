// SPDX-License-Identifier: Apache-2.0

// Package nodeimage builds the node image of a release: kubelet, container runtime and CNI plugins, from the files that
// their projects publish or from the user's own files.
package nodeimage

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// archPlaceholder stands for the architecture in the places of a Source.
const archPlaceholder = "{arch}"

const (
	sha256Prefix = "sha256:"
	// checksumSuffix is the suffix of the default checksum file next to a source.
	checksumSuffix = ".sha256"
)

// Source is where a file of the image comes from: a program, or a tar archive of programs.
type Source struct {
	// Name is the name of the flag: kubelet, containerd, ...
	Name string
	// Place is a URL or a path; {arch} in it stands for the architecture in Go's notation (GOARCH).
	Place string
	// Checksum is the SHA-256 as "sha256:<hex>", or the URL or path of a file that contains it. The URL or path may
	// contain {arch}.
	Checksum string
}

// ParseSource parses PLACE[@CHECKSUM]. The default checksum is in the file PLACE.sha256.
func ParseSource(name, text string) (Source, error) {
	place, checksum := text, text+checksumSuffix
	if i := strings.LastIndex(text, "@"); i >= 0 {
		place, checksum = text[:i], text[i+1:]
	}
	if place == "" || checksum == "" {
		return Source{}, fmt.Errorf("%q is not a source; write URL-or-file@sha256:<hex>, or URL-or-file@<URL or file of the checksum>", text)
	}
	if digest, ok := strings.CutPrefix(checksum, sha256Prefix); ok {
		if raw, err := hex.DecodeString(digest); err != nil || len(raw) != 32 {
			return Source{}, fmt.Errorf("%q is not a SHA-256, which has 64 hexadecimal digits", checksum)
		}
	}
	return Source{Name: name, Place: place, Checksum: checksum}, nil
}

// For returns the source with {arch} replaced.
func (s Source) For(arch string) Source {
	s.Place = strings.ReplaceAll(s.Place, archPlaceholder, arch)
	s.Checksum = strings.ReplaceAll(s.Checksum, archPlaceholder, arch)
	return s
}

// Validate rejects a source that cannot be correct for several architectures.
func (s Source) Validate(architectures []string) error {
	if len(architectures) > 1 && !strings.Contains(s.Place, archPlaceholder) {
		return fmt.Errorf("%s is one file for the architectures %s: put {arch} where its place names the architecture, or give one --arch",
			s.Place, strings.Join(architectures, ", "))
	}
	if len(architectures) > 1 && strings.HasPrefix(s.Checksum, sha256Prefix) {
		return fmt.Errorf("%s has one checksum for the architectures %s: name a file of checksums, which may have {arch} too, or give one --arch",
			s.Place, strings.Join(architectures, ", "))
	}
	return nil
}

func isURL(place string) bool { return strings.Contains(place, "://") }
