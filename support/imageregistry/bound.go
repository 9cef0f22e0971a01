// SPDX-License-Identifier: Apache-2.0

package imageregistry

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// MaxLayer is the maximum size of an unpacked layer, in bytes. The largest layer of a node image has about 130 MB, and
	// that of an OpenShift base image 250 MB.
	MaxLayer = 1 << 30
	// MaxLayers is the maximum number of layers of an image; container runtimes refuse more than 127.
	MaxLayers = 127
)

// ImageError reports an image that exceeds a limit or has an unsupported format. Its text has images, layers and sizes,
// and no address.
type ImageError struct{ text string }

// Error returns the text of the error.
func (e *ImageError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &ImageError{text: fmt.Sprintf(format, args...)} }

// ConfigFile reads an image's configuration. It returns an error if the size in the manifest exceeds MaxMetadata,
// because the library reads as many bytes as the manifest says.
func ConfigFile(image v1.Image, named string) (*v1.ConfigFile, error) {
	if err := checkConfig(image, named); err != nil {
		return nil, err
	}
	return image.ConfigFile()
}

func checkConfig(image v1.Image, named string) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	if size := manifest.Config.Size; size < 0 || size > MaxMetadata {
		return refuse("the configuration of image %s has %d bytes, more than the %d that are read", named, size, MaxMetadata)
	}
	return nil
}

// Bound returns an image with limits on its configuration and layers. A layer must be gzip or plain tar, and unpack to
// at most MaxLayer bytes. named is the name of the image in errors. Bound does not change other methods, such as those
// for compressed layers.
func Bound(image v1.Image, named string) v1.Image {
	return &bounded{Image: image, named: named, limit: MaxLayer}
}

// bounded is an image with limits.
type bounded struct {
	v1.Image
	named string
	limit int64
}

// ConfigFile implements v1.Image.
func (b *bounded) ConfigFile() (*v1.ConfigFile, error) { return ConfigFile(b.Image, b.named) }

// RawConfigFile implements v1.Image.
func (b *bounded) RawConfigFile() ([]byte, error) {
	if err := checkConfig(b.Image, b.named); err != nil {
		return nil, err
	}
	return b.Image.RawConfigFile()
}

// Layers implements v1.Image.
func (b *bounded) Layers() ([]v1.Layer, error) {
	layers, err := b.Image.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) > MaxLayers {
		return nil, refuse("image %s has %d layers, more than the %d that are read", b.named, len(layers), MaxLayers)
	}
	all := make([]v1.Layer, 0, len(layers))
	for _, layer := range layers {
		all = append(all, &boundedLayer{Layer: layer, of: b})
	}
	return all, nil
}

// LayerByDigest implements v1.Image.
func (b *bounded) LayerByDigest(digest v1.Hash) (v1.Layer, error) {
	return b.layer(b.Image.LayerByDigest(digest))
}

// LayerByDiffID implements v1.Image.
func (b *bounded) LayerByDiffID(diffID v1.Hash) (v1.Layer, error) {
	if err := checkConfig(b.Image, b.named); err != nil {
		return nil, err
	}
	return b.layer(b.Image.LayerByDiffID(diffID))
}

func (b *bounded) layer(layer v1.Layer, err error) (v1.Layer, error) {
	if err != nil {
		return nil, err
	}
	return &boundedLayer{Layer: layer, of: b}, nil
}

// boundedLayer is a layer of a bounded image.
type boundedLayer struct {
	v1.Layer
	of *bounded
}

// Uncompressed implements v1.Layer.
func (l *boundedLayer) Uncompressed() (io.ReadCloser, error) {
	digest, err := l.Digest()
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("layer %s of image %s", digest, l.of.named)
	compressed, err := l.Compressed()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	content, err := unpack(compressed)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", what, err), compressed.Close())
	}
	return &layerContent{Reader: content, compressed: compressed, left: l.of.limit, limit: l.of.limit, what: what}, nil
}

const (
	tarBlock    = 512
	tarMagicAt  = 257
	tarMagic    = "ustar"
	gzipMagic   = "\x1f\x8b"
	zstdMagic   = "\x28\xb5\x2f\xfd"
	formatsRead = "only gzip and plain tar are read; build the image with gzip"
)

// unpack detects the format of a layer by its content, because media types are often wrong.
func unpack(compressed io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(compressed)
	start, err := buffered.Peek(tarBlock)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	text := string(start)
	switch {
	case strings.HasPrefix(text, gzipMagic):
		return gzip.NewReader(buffered)
	case len(text) > tarMagicAt && strings.HasPrefix(text[tarMagicAt:], tarMagic), len(bytes.Trim(start, "\x00")) == 0:
		return buffered, nil
	case strings.HasPrefix(text, zstdMagic):
		return nil, refuse("it is compressed with zstd: %s", formatsRead)
	}
	return nil, refuse("it is compressed in an unknown way: %s", formatsRead)
}

// layerContent is an unpacked layer. Its reader fails if the layer exceeds the limit.
type layerContent struct {
	io.Reader
	compressed  io.Closer
	left, limit int64
	what        string
}

// Read implements io.Reader.
func (l *layerContent) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.Reader.Read(p)
	if int64(n) > l.left {
		n, l.left = int(l.left), 0
		return n, refuse("%s unpacks to more than %d bytes", l.what, l.limit)
	}
	l.left -= int64(n)
	return n, err
}

// Close implements io.Closer.
func (l *layerContent) Close() error { return l.compressed.Close() }
