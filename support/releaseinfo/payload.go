// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/imageregistry"
)

const (
	referencesFile = "release-manifests/image-references"
	metadataFile   = "release-manifests/release-metadata"

	metadataKind            = "cincinnati-metadata-v0"
	distributionKey         = "io.hypershift.distribution"
	architectureKey         = "release.openshift.io/architecture"
	lowestOperatorKey       = "io.hypershift.lowest-operator"
	buildVersionsAnnotation = "io.openshift.build.versions"

	// maxFileSize limits the memory that a file of a payload can take; the largest real one is below 1 MiB.
	maxFileSize = 16 << 20
)

var errNotARelease = errors.New("it has no " + referencesFile)

type releaseMetadata struct {
	Kind     string            `json:"kind"`
	Version  string            `json:"version"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Build returns an image with a release payload.
func Build(p Payload) (v1.Image, error) {
	files, err := encode(p)
	if err != nil {
		return nil, fmt.Errorf("build release payload %s: %w", p.Version, err)
	}
	layer, err := layerOf(files)
	if err != nil {
		return nil, fmt.Errorf("build release payload %s: %w", p.Version, err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("build release payload %s: %w", p.Version, err)
	}
	arch := p.Architecture
	if arch == "" || arch == ArchitectureMulti {
		arch = "amd64"
	}
	labels := map[string]string{"io.openshift.release": p.Version}
	return mutate.ConfigFile(img, &v1.ConfigFile{
		OS: "linux", Architecture: arch,
		Config: v1.Config{Labels: labels},
		RootFS: rootFS(img),
	})
}

func rootFS(img v1.Image) v1.RootFS {
	// The configuration of an image built in memory is always readable.
	cfg, _ := img.ConfigFile()
	return cfg.RootFS
}

func encode(p Payload) (map[string][]byte, error) {
	stream := imagev1.ImageStream{
		TypeMeta:   metav1.TypeMeta{APIVersion: "image.openshift.io/v1", Kind: "ImageStream"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Version},
	}
	for _, tag := range slices.Sorted(maps.Keys(p.Components)) {
		stream.Spec.Tags = append(stream.Spec.Tags, imagev1.TagReference{
			Name: tag,
			From: &corev1.ObjectReference{Kind: "DockerImage", Name: p.Components[tag]},
		})
	}
	if len(p.ComponentVersions) > 0 && len(stream.Spec.Tags) > 0 {
		stream.Spec.Tags[0].Annotations = map[string]string{buildVersionsAnnotation: joinVersions(p.ComponentVersions)}
	}
	meta := releaseMetadata{Kind: metadataKind, Version: p.Version, Metadata: map[string]string{}}
	if p.Distribution == Kubernetes {
		meta.Metadata[distributionKey] = strings.ToLower(string(Kubernetes))
	}
	if p.Architecture == ArchitectureMulti {
		meta.Metadata[architectureKey] = ArchitectureMulti
	}
	if p.LowestOperator != "" {
		meta.Metadata[lowestOperatorKey] = p.LowestOperator
	}
	references, err := json.MarshalIndent(stream, "", "  ")
	if err != nil {
		return nil, err
	}
	metadata, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{referencesFile: references, metadataFile: metadata}
	if len(p.BootImages.Architectures)+len(p.BootImages.Streams) > 0 {
		if files[bootImagesFile], err = encodeBootImages(p.BootImages); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func joinVersions(versions map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, name+"="+versions[name])
	}
	return strings.Join(parts, ",")
}

// layerOf writes no time stamps, so that the same payload always has the same digest.
func layerOf(files map[string][]byte) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name]))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	})
}

// Read reads the payload from the image of a release, within the limits of package imageregistry. named is the image's
// name in errors. The error says if the image is not a release.
func Read(img v1.Image, named string) (Payload, error) {
	return readPayload(imageregistry.Bound(img, named))
}

// readPayload reads the payload's files from the top layer down. It stops after the layer that contains them: the
// layers below are a base image of some hundred megabytes.
func readPayload(img v1.Image) (Payload, error) {
	layers, err := img.Layers()
	if err != nil {
		return Payload{}, err
	}
	files := map[string][]byte{}
	for _, layer := range slices.Backward(layers) {
		if err := readFiles(layer, files); err != nil {
			return Payload{}, err
		}
		if files[referencesFile] != nil {
			break
		}
	}
	if files[referencesFile] == nil {
		return Payload{}, errNotARelease
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return Payload{}, err
	}
	return decode(files, cfg.Architecture)
}

func readFiles(layer v1.Layer, into map[string][]byte) error {
	content, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			// Read to the end: a mismatch between a layer's content and its digest is reported only there.
			_, err := io.Copy(io.Discard, content)
			return err
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if name != referencesFile && name != metadataFile && name != bootImagesFile || into[name] != nil {
			continue
		}
		if header.Size > maxFileSize {
			return fmt.Errorf("%w that can be read: %s has %d bytes, more than the %d that are read", errNotARelease, name,
				header.Size, maxFileSize)
		}
		if into[name], err = io.ReadAll(r); err != nil {
			return err
		}
	}
}

func decode(files map[string][]byte, arch string) (Payload, error) {
	var stream imagev1.ImageStream
	if err := json.Unmarshal(files[referencesFile], &stream); err != nil {
		return Payload{}, fmt.Errorf("%w that can be read: %w", errNotARelease, err)
	}
	meta := releaseMetadata{}
	if raw := files[metadataFile]; raw != nil {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return Payload{}, fmt.Errorf("%w with a readable %s: %w", errNotARelease, metadataFile, err)
		}
	}
	p := Payload{
		Version:           meta.Version,
		Distribution:      OpenShift,
		Architecture:      arch,
		LowestOperator:    meta.Metadata[lowestOperatorKey],
		Components:        map[string]string{},
		ComponentVersions: map[string]string{},
	}
	if p.Version == "" {
		p.Version = stream.Name
	}
	if strings.EqualFold(meta.Metadata[distributionKey], string(Kubernetes)) {
		p.Distribution = Kubernetes
	}
	if a := meta.Metadata[architectureKey]; a != "" {
		p.Architecture = a
	}
	decodeTags(stream.Spec.Tags, &p)
	p.BootImages = decodeBootImages(files[bootImagesFile])
	if p.Version == "" || len(p.Components) == 0 {
		return Payload{}, fmt.Errorf("%w that names a version and components", errNotARelease)
	}
	return p, nil
}

func decodeTags(tags []imagev1.TagReference, p *Payload) {
	for _, tag := range tags {
		if tag.From == nil || tag.From.Kind != "DockerImage" {
			continue
		}
		p.Components[tag.Name] = tag.From.Name
		for pair := range strings.SplitSeq(tag.Annotations[buildVersionsAnnotation], ",") {
			if name, version, ok := strings.Cut(pair, "="); ok {
				p.ComponentVersions[name] = version
			}
		}
	}
}
