// SPDX-License-Identifier: Apache-2.0

// Package transfer finds images in registries and copies them, digest for digest.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift/hypershift/support/imageregistry"
)

// pushTimeout limits the push of one image with all its architectures; the largest have a gigabyte.
const pushTimeout = time.Hour

// Client accesses registries.
type Client struct {
	// Transport sends the requests.
	Transport http.RoundTripper
	// Keychain provides the credentials.
	Keychain authn.Keychain
	// Insecure allows plain HTTP.
	Insecure bool
}

// Content is a v1.ImageIndex or a v1.Image.
type Content interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// Image is an image that Find has found.
type Image struct {
	// Ref is its pull specification by digest; Named is the reference that was requested.
	Ref   name.Digest
	Named name.Reference
	// Architectures are the architectures of the image, sorted.
	Architectures []string
	// Content is read on demand.
	Content Content
}

func (c *Client) registry() *imageregistry.Client {
	return &imageregistry.Client{
		Transport: c.Transport, Keychain: c.Keychain, Insecure: c.Insecure,
		Backoff: remote.Backoff{Duration: 500 * time.Millisecond, Factor: 3, Jitter: 0.2, Steps: 3},
	}
}

// Parse parses a pull specification.
func (c *Client) Parse(spec string) (name.Reference, error) { return c.registry().Parse(spec) }

// Repository parses the name of a repository.
func (c *Client) Repository(spec string) (name.Repository, error) {
	return c.registry().Repository(spec)
}

// Find resolves a pull specification to its current image. It returns an error if one of the architectures is missing.
func (c *Client) Find(ctx context.Context, spec string, architectures []string) (*Image, error) {
	ref, err := c.Parse(spec)
	if err != nil {
		return nil, err
	}
	descriptor, err := c.registry().Get(ctx, ref)
	if err != nil {
		return nil, explain(spec, err)
	}
	image := &Image{Named: ref, Ref: ref.Context().Digest(descriptor.Digest.String())}
	if err := image.read(descriptor); err != nil {
		return nil, explain(spec, err)
	}
	for _, arch := range architectures {
		if !slices.Contains(image.Architectures, arch) {
			return nil, fmt.Errorf("image %s is not there for %s, only for %s: name one that is, or build for fewer architectures with --arch",
				spec, arch, strings.Join(image.Architectures, ", "))
		}
	}
	return image, nil
}

func (i *Image) read(descriptor *remote.Descriptor) error {
	if !descriptor.MediaType.IsIndex() {
		image, err := descriptor.Image()
		if err != nil {
			return err
		}
		config, err := imageregistry.ConfigFile(image, i.Named.String())
		if err != nil {
			return err
		}
		i.Content, i.Architectures = image, []string{config.Architecture}
		return nil
	}
	index, err := descriptor.ImageIndex()
	if err != nil {
		return err
	}
	i.Content = index
	i.Architectures, err = architecturesOf(index)
	return err
}

// architecturesOf returns the architectures for which an index has a Linux image. Attestations are images of platform
// unknown.
func architecturesOf(index v1.ImageIndex) ([]string, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, m := range manifest.Manifests {
		if m.Platform != nil && m.Platform.OS == "linux" {
			found[m.Platform.Architecture] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// For returns the image for an architecture that Architectures lists.
func (i *Image) For(arch string) (v1.Image, error) {
	index, ok := i.Content.(v1.ImageIndex)
	if !ok {
		return i.Content.(v1.Image), nil
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == arch {
			return index.Image(m.Digest)
		}
	}
	return nil, fmt.Errorf("image %s is not there for %s", i.Ref, arch)
}

// Any returns the image itself, or one of the Linux images of an index.
func (i *Image) Any() (v1.Image, error) {
	index, ok := i.Content.(v1.ImageIndex)
	if !ok {
		return i.Content.(v1.Image), nil
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.MediaType.IsImage() && (m.Platform == nil || m.Platform.OS == "linux") {
			return index.Image(m.Digest)
		}
	}
	return nil, errors.New("its index has no image for Linux")
}

// Copy pushes the complete image into a repository under the same digest, with the tag that was requested. Existing
// blobs are not sent again.
func (c *Client) Copy(ctx context.Context, image *Image, to name.Repository) (name.Digest, error) {
	var target name.Reference = to.Digest(image.Ref.DigestStr())
	if tag, ok := image.Named.(name.Tag); ok {
		target = to.Tag(tag.TagStr())
	}
	return c.Push(ctx, target, image.Content)
}

// Push pushes an index or a single image, and returns its pull specification by digest.
func (c *Client) Push(ctx context.Context, target name.Reference, content Content) (name.Digest, error) {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	if err := c.registry().Write(ctx, target, content); err != nil {
		return name.Digest{}, explainPush(target, err)
	}
	digest, err := content.Digest()
	if err != nil {
		return name.Digest{}, fmt.Errorf("digest of what was pushed to %s: %w", target, err)
	}
	return target.Context().Digest(digest.String()), nil
}

// explain formats a registry's error about reading an image in one line, with a remedy.
func explain(spec string, err error) error {
	return fmt.Errorf("cannot read image %s: %w; %s", spec, oneLine(err), advice(err, "check the name, and the credentials for the registry (--pull-secret)"))
}

// explainPush formats a registry's error about pushing an image in one line, with a remedy.
func explainPush(target name.Reference, err error) error {
	return fmt.Errorf("push %s: %w; %s", target, oneLine(err), advice(err, "check that you may push there, and the credentials for the registry (--pull-secret)"))
}

// advice returns the remedy for a failure; refused is the remedy if the registry denies access.
func advice(err error, refused string) string {
	answer, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return "check that the registry can be reached from here by HTTPS, and --ca-file"
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return "check the name and the tag"
	case http.StatusUnauthorized, http.StatusForbidden:
		return refused
	}
	return "the registry has a problem: try again later"
}

// oneLine returns the error in one line.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
