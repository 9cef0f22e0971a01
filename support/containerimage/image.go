// SPDX-License-Identifier: Apache-2.0

// Package containerimage builds container images of compiled programs without a container engine. The same programs
// produce the same images.
package containerimage

import (
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// NonRoot is the user, "uid:gid", of images that need no privilege.
const NonRoot = "65532:65532"

// searchPath is the default search path for programs of container runtimes, for images that set none.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Image describes a container image.
type Image struct {
	// Name is the last part of the image's repository.
	Name string
	// Reference is the repository, without a registry, and the tag under which the image is published. It is empty if the
	// pusher chooses it.
	Reference string
	// Below are the files of a separate layer below Files, for images that share that layer or have only that layer;
	// may be nil.
	Below []File
	// Files are the files of the image's upper layer.
	Files []File
	// Entrypoint is the command that the image runs.
	Entrypoint []string
	// User is the numeric "uid:gid" that the image runs as; empty is root.
	User string
	// Env is the environment of the command, as KEY=VALUE.
	Env []string
	// Labels are the labels in the image's configuration; may be nil.
	Labels map[string]string
}

// FilesByLayer returns a list of files for each layer, the lowest layer first.
func (i Image) FilesByLayer() [][]File {
	if len(i.Below) == 0 {
		return [][]File{i.Files}
	}
	return [][]File{i.Below, i.Files}
}

// Assemble builds the image for Linux from the layers with its files. arch is an architecture as Go names it.
func Assemble(image Image, arch string, layers ...v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var parts []mutate.Addendum
	for _, layer := range layers {
		parts = append(parts, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "make image", Comment: image.Name}})
	}
	built, err := mutate.Append(base, parts...)
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{
		Entrypoint: image.Entrypoint,
		User:       image.User,
		Env:        slices.Concat([]string{searchPath}, image.Env),
		Labels:     image.Labels,
	}
	return mutate.ConfigFile(built, config)
}
