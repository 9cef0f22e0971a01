// Package images builds the container images of the embedded environment from programs that are already built: no
// container engine is needed, and the same programs give the same images. They are kept as an OCI layout, from which they
// are pushed to a registry.
package images

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nameAnnotation is where an OCI layout says what an image is called.
const nameAnnotation = "org.opencontainers.image.ref.name"

// Image is what an image is made of.
type Image struct {
	// Name is the last part of its repository.
	Name string
	// Files are its file system, all in one layer.
	Files []File
	// Entrypoint is what it runs.
	Entrypoint []string
	// User is the numeric "uid:gid" that it runs as; empty is root.
	User string
	// Env is its environment, KEY=VALUE.
	Env []string
}

// Build writes all images into a new OCI layout that replaces the one at target.
func Build(target string, images []Image) error {
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

func add(store layout.Path, image Image) error {
	tarball := filepath.Join(string(store), "layer.tar")
	layer, err := newLayer(tarball, image.Files)
	if err != nil {
		return err
	}
	// The layout takes the file over as it is, instead of a second copy of it.
	blob := filepath.Join(string(store), "blobs", layer.hash.Algorithm, layer.hash.Hex)
	if err := os.MkdirAll(filepath.Dir(blob), 0o755); err != nil {
		return err
	}
	if err := os.Rename(tarball, blob); err != nil {
		return err
	}
	layer.path = blob
	built, err := assemble(image, layer)
	if err != nil {
		return err
	}
	return store.AppendImage(built, layout.WithAnnotations(map[string]string{nameAnnotation: image.Name}))
}

func assemble(image Image, layer v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{CreatedBy: "devcluster images build", Comment: image.Name},
	})
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: image.Entrypoint,
		User:       image.User,
		Env:        slices.Concat([]string{"PATH=/usr/sbin:/usr/bin"}, image.Env),
	}
	return mutate.ConfigFile(built, config)
}
