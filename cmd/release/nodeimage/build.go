// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/hypershift/support/containerimage"
)

// Build builds the image for the architectures, with one layer for each source. If a release changes one source, nodes
// pull only that layer. dir holds the layers until the image is pushed. The same files give the same digest. Build
// calls done for each file that it has added.
func Build(ctx context.Context, f *Fetcher, sources []Source, architectures []string, dir string, done func(Source)) (v1.ImageIndex, error) {
	sources = slices.SortedFunc(slices.Values(sources), func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(slices.Values(architectures)) {
		var layers []v1.Layer
		for _, source := range sources {
			layer, err := layerOf(ctx, f, source.For(arch), arch, filepath.Join(dir, arch, source.Name))
			if err != nil {
				return nil, fmt.Errorf("%s for %s: %w", source.Name, arch, err)
			}
			layers = append(layers, layer)
			done(source.For(arch))
		}
		image, err := containerimage.Assemble(containerimage.Image{Name: "node"}, arch, layers...)
		if err != nil {
			return nil, fmt.Errorf("making the node image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, nil
}

func layerOf(ctx context.Context, f *Fetcher, s Source, arch, dir string) (v1.Layer, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	fetched, err := f.Fetch(ctx, s)
	if err != nil {
		return nil, err
	}
	files, err := unpack(s, arch, fetched, dir)
	if err != nil {
		return nil, err
	}
	plain := filepath.Join(dir, "layer.tar")
	if err := containerimage.WriteLayer(plain, files); err != nil {
		return nil, err
	}
	if err := compress(plain, plain+".gz"); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	for _, file := range append(files, containerimage.File{Source: plain}) {
		if strings.HasPrefix(file.Source, dir) {
			if err := os.Remove(file.Source); err != nil {
				return nil, err
			}
		}
	}
	return tarball.LayerFromFile(plain+".gz", tarball.WithMediaType(types.OCILayer))
}

// compress uses a fast level, whose files are about a tenth larger.
func compress(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	zipped, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, err = io.Copy(zipped, in)
	return errors.Join(err, zipped.Close(), out.Close())
}
