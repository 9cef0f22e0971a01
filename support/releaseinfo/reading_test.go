// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const references = `{"metadata":{"name":"4.20.1"},"spec":{"tags":[{"name":"cli","from":{"kind":"DockerImage","name":"quay.example/cli@sha256:1"}}]}}`

// file is an entry of a layer, in the order of writing.
type file struct{ name, text string }

func layerWith(t *testing.T, files ...file) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.text))}), write(w, f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return layerOfBytes(t, buf.Bytes())
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

func layerOfBytes(t *testing.T, raw []byte) v1.Layer {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// unreadable is a layer whose content cannot be read, such as one that a registry lost.
type unreadable struct{ v1.Layer }

var errLost = errors.New("blob unknown")

func (unreadable) Compressed() (io.ReadCloser, error) { return nil, errLost }

// stack is an image that only serves its layers and its configuration.
type stack struct {
	v1.Image
	layers []v1.Layer
}

func (s stack) Layers() ([]v1.Layer, error) { return s.layers, nil }

func imageWith(t *testing.T, layers ...v1.Layer) v1.Image {
	t.Helper()
	configured, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "s390x"})
	if err != nil {
		t.Fatal(err)
	}
	return stack{Image: configured, layers: layers}
}

func TestRead(t *testing.T) {
	const metadata = `{"kind":"cincinnati-metadata-v0","version":"4.20.2"}`
	base := layerWith(t, file{"usr/bin/true", "x"})
	for name, tc := range map[string]struct {
		layers  []v1.Layer
		version string
		is      error
	}{
		"When a layer has the files, it should not read the layers below": {
			[]v1.Layer{unreadable{base}, layerWith(t, file{metadataFile, metadata}, file{referencesFile, references})}, "4.20.2", nil},
		"When the top layer has no files, it should read the layer below": {
			[]v1.Layer{layerWith(t, file{referencesFile, references}), base}, "4.20.1", nil},
		"When two layers have the files, it should use the upper layer": {
			[]v1.Layer{layerWith(t, file{referencesFile, `{"metadata":{"name":"0.0.0"}}`}), layerWith(t, file{referencesFile, references})}, "4.20.1", nil},
		"When two layers have one file each, it should use both": {
			[]v1.Layer{layerWith(t, file{referencesFile, references}), layerWith(t, file{metadataFile, metadata})}, "4.20.2", nil},
		"When a layer has a file twice, it should use the first": {
			[]v1.Layer{layerWith(t, file{referencesFile, references}, file{referencesFile, "{"})}, "4.20.1", nil},
		"When file names begin with a dot, it should read the files": {
			[]v1.Layer{layerWith(t, file{"./" + referencesFile, references})}, "4.20.1", nil},
		"When file names begin with a slash, it should read the files": {
			[]v1.Layer{layerWith(t, file{"/" + referencesFile, references})}, "4.20.1", nil},
		"When a file name leads out of the image, it should be resolved to the root": {
			[]v1.Layer{layerWith(t, file{"../" + referencesFile, references})}, "4.20.1", nil},
		"When the file is in another directory, it should not be a release": {
			[]v1.Layer{layerWith(t, file{"backup/" + referencesFile, references})}, "", errNotARelease},
		"When there is only metadata, it should not be a release": {[]v1.Layer{layerWith(t, file{metadataFile, metadata})}, "", errNotARelease},
		"When there are no layers, it should not be a release":    {nil, "", errNotARelease},
		"When a required layer cannot be read, it should return that error": {
			[]v1.Layer{unreadable{base}, layerWith(t, file{metadataFile, metadata})}, "", errLost},
		"When a layer is truncated, it should return an error": {
			[]v1.Layer{layerOfBytes(t, cutOff(t))}, "", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			payload, err := Read(imageWith(t, tc.layers...), "r.example/release:1")
			if tc.is != nil {
				g.Expect(err).To(MatchError(tc.is))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(payload.Version).To(Equal(tc.version))
			g.Expect(payload.Architecture).To(Equal("s390x"), "where the payload does not say, its image does")
		})
	}
}

// cutOff returns a layer that ends in the middle of the payload's file.
func cutOff(t *testing.T) []byte {
	t.Helper()
	content, err := layerWith(t, file{referencesFile, references}).Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return raw[:512+len(references)/2]
}

// TestReadIsBounded checks the memory limit. The tenant chooses the payload, and the operator has the memory of a pod.
func TestReadIsBounded(t *testing.T) {
	huge := `{"metadata":{"name":"` + string(bytes.Repeat([]byte("x"), maxFileSize)) + `"}}`
	_, err := Read(imageWith(t, layerWith(t, file{referencesFile, huge})), "r.example/release:1")
	NewWithT(t).Expect(err).To(MatchError(errNotARelease))
}

// TestBuildRoundTrip checks that the operator reads what `hypershift release build` writes.
func TestBuildRoundTrip(t *testing.T) {
	for name, want := range map[string]Payload{
		"Kubernetes for one architecture": {Version: "1.36.3", Distribution: Kubernetes, Architecture: "arm64", Components: map[string]string{"etcd": "r/etcd:3", "node": "r/node:1"},
			ComponentVersions: map[string]string{"kubernetes": "1.36.3", "etcd": "3.6.8"}},
		"Kubernetes for several architectures": {Version: "1.36.3", Distribution: Kubernetes, Architecture: ArchitectureMulti, Components: map[string]string{"etcd": "r/etcd:3"},
			ComponentVersions: map[string]string{}},
		"OpenShift with boot images": {Version: "4.20.1", Distribution: OpenShift, Architecture: "amd64", Components: map[string]string{"cli": "r/cli:1"},
			ComponentVersions: map[string]string{}, BootImages: bootImages()},
	} {
		t.Run("When the payload is "+name+", it should be read as it was built", func(t *testing.T) {
			g := NewWithT(t)
			img, err := Build(want)
			g.Expect(err).NotTo(HaveOccurred())
			got, err := Read(img, "r.example/release:1")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
			config, err := img.ConfigFile()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Config.Labels).To(HaveKeyWithValue("io.openshift.release", want.Version))
			g.Expect(config.OS).To(Equal("linux"))
			g.Expect(config.Architecture).To(BeElementOf("arm64", "amd64"), "an image has one architecture, also where its content is for all")
		})
	}
	t.Run("When the architecture is not set, it should default to amd64", func(t *testing.T) {
		g := NewWithT(t)
		img, err := Build(Payload{Version: "1.0.0", Components: map[string]string{"a": "b"}})
		g.Expect(err).NotTo(HaveOccurred())
		got, err := Read(img, "r.example/release:1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Architecture).To(Equal("amd64"))
		g.Expect(got.Distribution).To(Equal(OpenShift))
	})
}

// TestReleaseImageIsItsOwn checks that callers cannot change a payload, because all callers of Lookup share it.
func TestReleaseImageIsItsOwn(t *testing.T) {
	g := NewWithT(t)
	p := Payload{Version: "1.0.0", Components: map[string]string{"a": "b"}, ComponentVersions: map[string]string{"a": "1"}}
	release := New("r/release:1", p)
	p.Components["a"], p.ComponentVersions["a"] = "changed", "changed"
	release.ComponentVersions()["a"] = "changed"
	release.ComponentImages()["a"] = "changed"
	image, known := release.ComponentImage("a")
	g.Expect(known).To(BeTrue())
	g.Expect(image).To(Equal("b"))
	g.Expect(release.ComponentVersions()).To(Equal(map[string]string{"a": "1"}))
	g.Expect(release.Distribution()).To(Equal(OpenShift))
	g.Expect(release.Architecture()).To(Equal("amd64"))
}

// TestFilesForOthers checks that our payloads use OpenShift's file names, for tools such as `oc adm release info`.
func TestFilesForOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		images BootImages
		want   []string
	}{
		"no boot images": {BootImages{}, []string{referencesFile, metadataFile}},
		"boot images":    {bootImages(), []string{bootImagesFile, referencesFile, metadataFile}},
		"one stream":     {BootImages{Architectures: bootImages().Architectures}, []string{bootImagesFile, referencesFile, metadataFile}},
	} {
		t.Run("When a payload has "+name+", it should have only the matching files", func(t *testing.T) {
			g := NewWithT(t)
			img, err := Build(Payload{Version: "4.20.1", Components: map[string]string{"cli": "r/cli"}, BootImages: tc.images})
			g.Expect(err).NotTo(HaveOccurred())
			layers, err := img.Layers()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(layers).To(HaveLen(1))
			content, err := layers[0].Uncompressed()
			g.Expect(err).NotTo(HaveOccurred())
			files := map[string]map[string]any{}
			for archive := tar.NewReader(content); ; {
				header, err := archive.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(header.FileInfo().Mode()).To(Equal(fs.FileMode(0o644)), "a regular file that every user of a container can read")
				raw, err := io.ReadAll(archive)
				g.Expect(err).NotTo(HaveOccurred())
				fields := map[string]any{}
				g.Expect(yaml.Unmarshal(raw, &fields)).To(Succeed())
				files[header.Name] = fields
			}
			g.Expect(slices.Collect(maps.Keys(files))).To(ConsistOf(tc.want))
			g.Expect(files[referencesFile]).To(And(HaveKeyWithValue("kind", "ImageStream"), HaveKeyWithValue("metadata", HaveKeyWithValue("name", "4.20.1"))))
			g.Expect(files[metadataFile]).To(HaveKeyWithValue("kind", "cincinnati-metadata-v0"))
			if config, has := files[bootImagesFile]; has {
				g.Expect(config).To(And(HaveKeyWithValue("kind", "ConfigMap"),
					HaveKeyWithValue("metadata", And(HaveKeyWithValue("name", "coreos-bootimages"), HaveKeyWithValue("namespace", "openshift-machine-config-operator")))))
				g.Expect(config["data"]).To(HaveLen(1 + min(len(tc.images.Streams), 1)))
			}
		})
	}
}
