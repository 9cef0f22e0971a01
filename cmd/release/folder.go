// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"

	"github.com/openshift/hypershift/cmd/release/transfer"
	"github.com/openshift/hypershift/support/imageregistry"
)

const (
	// refAnnotation is the annotation with the name of an image in an OCI layout (OCI image-spec, annotations).
	refAnnotation = "org.opencontainers.image.ref.name"
	// releaseAnnotation marks the release in a folder.
	releaseAnnotation = "io.hypershift.release"
)

// toFolder writes the release image last: a folder that contains it is complete.
func (c *copying) toFolder(ctx context.Context, dir string) error {
	store, err := layout.FromPath(dir)
	if err != nil {
		if _, statErr := os.Stat(filepath.Join(dir, "index.json")); statErr == nil {
			return fmt.Errorf("--to-dir: %s has an index.json that is not one of an OCI layout: %w", dir, err)
		}
		if store, err = layout.Write(dir, empty.Index); err != nil {
			return fmt.Errorf("--to-dir: %w", err)
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(c.images)) {
		if err := keep(store, c.images[tag], map[string]string{refAnnotation: c.payload.Components[tag]}); err != nil {
			return fmt.Errorf("component %s: copying %s to %s: %w", tag, c.payload.Components[tag], dir, err)
		}
		fmt.Fprintf(c.out, "%-25s copied %s\n", tag, c.payload.Components[tag])
	}
	annotations := map[string]string{refAnnotation: c.release.Named.Name(), releaseAnnotation: c.payload.Version}
	if err := keep(store, c.release, annotations); err != nil {
		return fmt.Errorf("copying release %s to %s: %w", c.release.Named, dir, err)
	}
	return ctx.Err()
}

// keep writes an image, or completes an existing one.
func keep(store layout.Path, image *transfer.Image, annotations map[string]string) error {
	digest, err := image.Content.Digest()
	if err != nil {
		return err
	}
	options := layout.WithAnnotations(annotations)
	if index, ok := image.Content.(v1.ImageIndex); ok {
		return store.ReplaceIndex(index, match.Digests(digest), options)
	}
	return store.ReplaceImage(image.Content.(v1.Image), match.Digests(digest), options)
}

// folder is a release that --to-dir has written.
type folder struct {
	dir      string
	client   *transfer.Client
	index    v1.ImageIndex
	manifest *v1.IndexManifest
}

func openFolder(dir string, client *transfer.Client) (*folder, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("--from-dir: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("--from-dir: reading the index of %s: %w", dir, err)
	}
	return &folder{dir: dir, client: client, index: index, manifest: manifest}, nil
}

func (f *folder) release(context.Context, []string) (*transfer.Image, error) {
	var releases []v1.Descriptor
	for _, entry := range f.manifest.Manifests {
		if entry.Annotations[releaseAnnotation] != "" {
			releases = append(releases, entry)
		}
	}
	switch len(releases) {
	case 0:
		return nil, fmt.Errorf("--from-dir: %s holds no complete release: copy one to it again with --to-dir", f.dir)
	case 1:
		return f.read(releases[0])
	}
	return nil, fmt.Errorf("--from-dir: %s holds %d releases: give each a folder of its own", f.dir, len(releases))
}

func (f *folder) image(_ context.Context, spec string) (*transfer.Image, error) {
	for _, entry := range f.manifest.Manifests {
		if f.is(entry, spec) {
			return f.read(v1.Descriptor{MediaType: entry.MediaType, Digest: entry.Digest, Annotations: map[string]string{refAnnotation: spec}})
		}
	}
	return nil, fmt.Errorf("--from-dir: %s does not hold %s: copy the release to it again with --to-dir", f.dir, spec)
}

// is compares by digest if the reference has one: an image may have several names.
func (f *folder) is(entry v1.Descriptor, spec string) bool {
	if ref, err := imageregistry.Parse(spec); err == nil {
		if digest, ok := ref.(name.Digest); ok {
			return digest.DigestStr() == entry.Digest.String()
		}
	}
	return entry.Annotations[refAnnotation] == spec
}

func (f *folder) read(entry v1.Descriptor) (*transfer.Image, error) {
	named, err := f.client.Parse(entry.Annotations[refAnnotation])
	if err != nil {
		return nil, fmt.Errorf("--from-dir: %s: %w", f.dir, err)
	}
	image := &transfer.Image{Named: named, Ref: named.Context().Digest(entry.Digest.String())}
	var failure error
	if entry.MediaType.IsIndex() {
		image.Content, failure = f.index.ImageIndex(entry.Digest)
	} else {
		image.Content, failure = f.index.Image(entry.Digest)
	}
	if failure != nil {
		return nil, fmt.Errorf("--from-dir: %s: %w", f.dir, failure)
	}
	return image, nil
}
