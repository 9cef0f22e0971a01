// SPDX-License-Identifier: Apache-2.0

// Package containerimage makes container images of programs that are already built, without a container engine: the same programs
// give the same images.
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

// searchPath is where container runtimes look for programs when an image does not say.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Image is what an image is made of.
type Image struct {
	// Name is the last part of its repository.
	Name string
	// Reference is the repository, without a registry, and the tag by which it is published; empty where who pushes it decides.
	Reference string
	// Below are the files of a layer of their own below Files, for images that share it or have nothing else; may be nil.
	Below []File
	// Files are its file system, all in one layer.
	Files []File
	// Entrypoint is what it runs.
	Entrypoint []string
	// User is the numeric "uid:gid" that it runs as; empty is root.
	User string
	// Env is its environment, KEY=VALUE.
	Env []string
	// Labels are those of its configuration; may be nil.
	Labels map[string]string
}

// FilesByLayer are its files, a list for each layer, from the lowest.
func (i Image) FilesByLayer() [][]File {
	if len(i.Below) == 0 {
		return [][]File{i.Files}
	}
	return [][]File{i.Below, i.Files}
}

// Assemble makes the image, for Linux on an architecture in Go's words, from the layers that hold its files.
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
