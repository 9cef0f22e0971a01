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

// pushTimeout bounds one image, of all its architectures; the largest have a gigabyte.
const pushTimeout = time.Hour

// Client talks to registries.
type Client struct {
	// Transport carries the requests.
	Transport http.RoundTripper
	// Keychain finds credentials.
	Keychain authn.Keychain
	// Insecure allows plain HTTP.
	Insecure bool
}

// Content is a v1.ImageIndex or a v1.Image.
type Content interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// Image is an image that was found.
type Image struct {
	// Ref is its pull specification by digest, and Named as it was asked for.
	Ref   name.Digest
	Named name.Reference
	// Architectures are those that it has, sorted.
	Architectures []string
	// Content is read when it is needed.
	Content Content
}

func (c *Client) registry() *imageregistry.Client {
	return &imageregistry.Client{
		Transport: c.Transport, Keychain: c.Keychain, Insecure: c.Insecure,
		Backoff: remote.Backoff{Duration: 500 * time.Millisecond, Factor: 3, Jitter: 0.2, Steps: 3},
	}
}

// Parse reads a pull specification.
func (c *Client) Parse(spec string) (name.Reference, error) { return c.registry().Parse(spec) }

// Repository reads the name of a repository.
func (c *Client) Repository(spec string) (name.Repository, error) {
	return c.registry().Repository(spec)
}

// Find reads which image a pull specification names now, and refuses one that lacks one of the architectures.
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

// architecturesOf are those for which an index has a Linux image. Attestations are images of platform unknown.
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

// For is the image for an architecture that it has.
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

// Any is the image, or one of those of an index for Linux.
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

// Copy pushes the image into a repository, all of it and under the same digest, with the tag that it was asked for by. What is there
// already is not sent again.
func (c *Client) Copy(ctx context.Context, image *Image, to name.Repository) (name.Digest, error) {
	var target name.Reference = to.Digest(image.Ref.DigestStr())
	if tag, ok := image.Named.(name.Tag); ok {
		target = to.Tag(tag.TagStr())
	}
	return c.Push(ctx, target, image.Content)
}

// Push sends an index or a single image, and returns its pull specification by digest.
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

// explain says in one line what a registry answered when an image was to be read, and what to do.
func explain(spec string, err error) error {
	return fmt.Errorf("cannot read image %s: %w; %s", spec, oneLine(err), advice(err, "check the name, and the credentials for the registry (--pull-secret)"))
}

// explainPush says the same of an image that was to be pushed.
func explainPush(target name.Reference, err error) error {
	return fmt.Errorf("push %s: %w; %s", target, oneLine(err), advice(err, "check that you may push there, and the credentials for the registry (--pull-secret)"))
}

// advice is what to do about a failure; refused is what to do where the registry lets nobody in.
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

// oneLine is an error in one line.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
