// SPDX-License-Identifier: Apache-2.0

// Package images builds the container images of the embedded environment from programs that are already built. It needs
// no container engine, and the same programs give the same images. The images are stored as an OCI layout, from which
// they are pushed to a registry.
package images

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/hypershift/support/containerimage"
)

const (
	// nameAnnotation is the annotation with the name of an image in an OCI layout.
	nameAnnotation = "org.opencontainers.image.ref.name"
	// referenceAnnotation is our annotation with the repository and tag of an image.
	referenceAnnotation = "io.hypershift.reference"
)

// Build writes all images into a new OCI layout that replaces the one at target.
func Build(target string, images []containerimage.Image) error {
	work := target + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	store, err := layout.Write(work, empty.Index)
	if err != nil {
		return fmt.Errorf("starting the OCI layout %s: %w", work, err)
	}
	for _, image := range images {
		if err := add(store, image); err != nil {
			return fmt.Errorf("building image %s: %w", image.Name, err)
		}
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	return os.Rename(work, target)
}

func add(store layout.Path, image containerimage.Image) error {
	var layers []v1.Layer
	for _, files := range image.FilesByLayer() {
		layer, err := blobOf(store, files)
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	built, err := containerimage.Assemble(image, runtime.GOARCH, layers...)
	if err != nil {
		return err
	}
	return store.AppendImage(built, layout.WithAnnotations(map[string]string{
		nameAnnotation: image.Name, referenceAnnotation: cmp.Or(image.Reference, "hypershift/"+image.Name+":"+tag),
	}))
}

// blobOf creates a layer directly as a blob of the layout, without a second copy.
func blobOf(store layout.Path, files []containerimage.File) (*fileLayer, error) {
	tarball := filepath.Join(string(store), "layer.tar")
	layer, err := newLayer(tarball, files)
	if err != nil {
		return nil, err
	}
	layer.path = filepath.Join(string(store), "blobs", layer.hash.Algorithm, layer.hash.Hex)
	if err := os.MkdirAll(filepath.Dir(layer.path), 0o755); err != nil {
		return nil, err
	}
	return layer, os.Rename(tarball, layer.path)
}

// fileLayer is an uncompressed layer in a tar file. Nodes pull over a local network, where compression costs more than
// it saves, and the bytes do not depend on the version of a compressor.
type fileLayer struct {
	path string
	hash v1.Hash
	size int64
}

func (l *fileLayer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l *fileLayer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l *fileLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l *fileLayer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
func (l *fileLayer) Size() (int64, error)                 { return l.size, nil }
func (l *fileLayer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }

func newLayer(target string, files []containerimage.File) (*fileLayer, error) {
	if err := containerimage.WriteLayer(target, files); err != nil {
		return nil, err
	}
	in, err := os.Open(target)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	hash, size, err := v1.SHA256(in)
	if err != nil {
		return nil, fmt.Errorf("hashing layer %s: %w", target, err)
	}
	return &fileLayer{path: target, hash: hash, size: size}, nil
}
