// SPDX-License-Identifier: Apache-2.0

package imageregistry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"
)

func archive(t testing.TB, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: int64(size), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func withLayers(t testing.TB, contents ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, content := range contents {
		var err error
		if image, err = mutate.AppendLayers(image, static.NewLayer(content, types.OCILayer)); err != nil {
			t.Fatal(err)
		}
	}
	return image
}

func TestLayersAreReadWithinBounds(t *testing.T) {
	small := archive(t, 10)
	for name, tc := range map[string]struct {
		layer []byte
		says  string
	}{
		"gzip":                    {zipped(t, small), ""},
		"several gzip members":    {append(zipped(t, small[:100]), zipped(t, small[100:])...), ""},
		"an uncompressed archive": {small, ""},
		"nothing":                 {nil, ""},
		"an empty archive":        {make([]byte, 1024), ""},
		"zstd": {[]byte("\x28\xb5\x2f\xfd\x04\x00crafted"),
			"it is compressed with zstd: only gzip and plain tar are read"},
		"xz":                                   {[]byte("\xfd7zXZ\x00rest"), "compressed in an unknown way"},
		"a truncated gzip":                     {zipped(t, small)[:30], "unexpected EOF"},
		"a gzip without a complete header":     {[]byte(gzipMagic), "EOF"},
		"a gzip of zeros":                      {zipped(t, make([]byte, 5000)), "unpacks to more than 4096 bytes"},
		"a larger uncompressed archive":        {archive(t, 5000), "unpacks to more than 4096 bytes"},
		"exactly as much content as the limit": {zipped(t, make([]byte, 4096)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			image := &bounded{Image: withLayers(t, tc.layer), named: "r.example/release:1", limit: 4096}
			layers, err := image.Layers()
			g.Expect(err).NotTo(HaveOccurred())
			content, err := layers[0].Uncompressed()
			if err == nil {
				_, err = io.Copy(io.Discard, content)
				g.Expect(content.Close()).To(Succeed())
			}
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			if !strings.Contains(tc.says, "EOF") {
				g.Expect(err).To(MatchError(And(ContainSubstring("layer sha256:"), ContainSubstring("image r.example/release:1"))))
			}
		})
	}
	t.Run("an image with too many layers is not read", func(t *testing.T) {
		contents := make([][]byte, MaxLayers+1)
		for i := range contents {
			contents[i] = []byte{byte(i), 1}
		}
		_, err := Bound(withLayers(t, contents...), "r.example/release:1").Layers()
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("image r.example/release:1 has 128 layers")))
	})
	t.Run("a layer that is read by digest has a limit, too", func(t *testing.T) {
		g := NewWithT(t)
		image := withLayers(t, []byte(zstdMagic))
		layers, err := image.Layers()
		g.Expect(err).NotTo(HaveOccurred())
		digest, err := layers[0].Digest()
		g.Expect(err).NotTo(HaveOccurred())
		layer, err := Bound(image, "r.example/release:1").LayerByDigest(digest)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = layer.Uncompressed()
		g.Expect(err).To(MatchError(ContainSubstring("zstd")))
	})
}

// claiming is an image with a large configuration size in its manifest.
type claiming struct {
	v1.Image
	size int64
}

// Manifest implements v1.Image.
func (c claiming) Manifest() (*v1.Manifest, error) {
	manifest, err := c.Image.Manifest()
	if err == nil {
		manifest = manifest.DeepCopy()
		manifest.Config.Size = c.size
	}
	return manifest, err
}

func TestConfigurationsAreReadWithinBounds(t *testing.T) {
	for _, size := range []int64{MaxMetadata + 1, 1 << 50, -1} {
		g := NewWithT(t)
		image := Bound(claiming{empty.Image, size}, "r.example/release:1")
		_, err := image.ConfigFile()
		g.Expect(err).To(MatchError(ContainSubstring("the configuration of image r.example/release:1 has")))
		_, err = image.RawConfigFile()
		g.Expect(err).To(HaveOccurred())
		_, err = image.LayerByDiffID(v1.Hash{})
		g.Expect(err).To(HaveOccurred())
	}
	g := NewWithT(t)
	_, err := Bound(claiming{empty.Image, MaxMetadata}, "r.example/release:1").ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
}

// FuzzUnpack unpacks layers with arbitrary content. Reading a layer ends, and returns no more bytes than the limit.
func FuzzUnpack(f *testing.F) {
	small := archive(f, 10)
	f.Add(small)
	f.Add(zipped(f, small))
	f.Add([]byte(zstdMagic))
	f.Add(append(zipped(f, small), 'x'))
	f.Fuzz(func(t *testing.T, content []byte) {
		const limit = 1 << 20
		image := &bounded{Image: withLayers(t, content), named: "i", limit: limit}
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := layers[0].Uncompressed()
		if err != nil {
			return
		}
		defer unpacked.Close()
		if n, _ := io.Copy(io.Discard, unpacked); n > limit {
			t.Fatalf("%d bytes were read", n)
		}
	})
}
