// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/hypershift/support/containerimage"
)

// build writes the OCI layout: the image for all architectures, and its attached artifacts. It returns the image's
// digest.
func build(o options) (v1.Hash, error) {
	base, err := containerimage.Base()
	if err != nil {
		return v1.Hash{}, err
	}
	work := o.to + ".new"
	if err := os.RemoveAll(work); err != nil {
		return v1.Hash{}, err
	}
	store, err := layout.Write(work, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("starting the OCI layout %s: %w", work, err)
	}
	digest, err := fill(store, o, base)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := os.RemoveAll(o.to); err != nil {
		return v1.Hash{}, err
	}
	return digest, os.Rename(work, o.to)
}

func fill(store layout.Path, o options, base []containerimage.File) (v1.Hash, error) {
	scratch, err := os.MkdirTemp("", "image")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(scratch)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var bills []v1.Image
	for _, arch := range o.architectures {
		programs := filepath.Join(o.programs, arch)
		image, err := imageFor(arch, programs, o, base, filepath.Join(scratch, arch+".tar"))
		if err != nil {
			return v1.Hash{}, err
		}
		bill, err := billOfMaterials(image, arch, programs, o)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
		bills = append(bills, bill)
	}
	if err := store.AppendIndex(index, layout.WithAnnotations(map[string]string{nameAnnotation: o.version})); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the image: %w", err)
	}
	origin, err := provenance(index, o, base)
	if err != nil {
		return v1.Hash{}, err
	}
	for _, attached := range append(bills, origin) {
		if err := store.AppendImage(attached); err != nil {
			return v1.Hash{}, fmt.Errorf("writing what is attached to the image: %w", err)
		}
	}
	return index.Digest()
}

// nameAnnotation is the annotation with the name of an image in an OCI layout (OCI image-spec, annotations).
const nameAnnotation = "org.opencontainers.image.ref.name"

func imageFor(arch, programs string, o options, base []containerimage.File, scratch string) (v1.Image, error) {
	for _, machine := range containerimage.NodeAgentArchitectures {
		if _, err := os.Stat(filepath.Join(programs, "node-agent", machine)); err != nil {
			return nil, fmt.Errorf("node-agent of %s machines in the image for %s (make image builds it): %w", machine, arch, err)
		}
	}
	image := containerimage.Product(programs, base)
	maps.Copy(image.Labels, map[string]string{
		"org.opencontainers.image.title": image.Name, "org.opencontainers.image.version": o.version, "org.opencontainers.image.revision": o.revision,
	})
	var layers []v1.Layer
	for i, files := range image.FilesByLayer() {
		target := fmt.Sprintf("%s.%d", scratch, i)
		if err := containerimage.WriteLayer(target, files); err != nil {
			return nil, fmt.Errorf("the programs for %s (make image builds them): %w", arch, err)
		}
		layer, err := tarball.LayerFromFile(target, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, fmt.Errorf("packing the programs for %s: %w", arch, err)
		}
		layers = append(layers, layer)
	}
	built, err := containerimage.Assemble(image, arch, layers...)
	if err != nil {
		return nil, fmt.Errorf("making the image for %s: %w", arch, err)
	}
	return built, nil
}

// described is a type that artifacts can be attached to.
type described interface {
	partial.Describable
	partial.WithRawManifest
}

// attach returns an artifact that refers to subject (OCI image-spec, "subject"); registries list it for the subject.
func attach(subject described, mediaType types.MediaType, content []byte) (v1.Image, error) {
	to, err := partial.Descriptor(subject)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mediaType)
	image, err := mutate.AppendLayers(base, static.NewLayer(content, mediaType))
	if err != nil {
		return nil, err
	}
	return mutate.Subject(image, v1.Descriptor{MediaType: to.MediaType, Digest: to.Digest, Size: to.Size}).(v1.Image), nil
}
