// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
)

// tag is the tag under which users find our images in the registry; programs use the digest.
const tag = "dev"

// Built describes an image in the OCI layout.
type Built struct {
	// Name is the image's name, such as "kube".
	Name string
	// Reference is its repository, without the registry, with its tag.
	Reference string
	// Digest is the digest of its manifest.
	Digest v1.Hash
}

// Repository returns the repository of the image in a registry.
func (b Built) Repository(registry string) string {
	repository, _, _ := strings.Cut(b.Reference, ":")
	return registry + "/" + repository
}

// Pullspec returns the pull specification, by digest, of this build in a registry.
func (b Built) Pullspec(registry string) string {
	return b.Repository(registry) + "@" + b.Digest.String()
}

// List returns the images in the OCI layout.
func List(from string) ([]Built, error) {
	index, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return nil, fmt.Errorf("reading the built images in %s (make images builds them): %w", from, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the built images in %s: %w", from, err)
	}
	built := make([]Built, 0, len(manifest.Manifests))
	for _, image := range manifest.Manifests {
		built = append(built, Built{
			Name: image.Annotations[nameAnnotation], Reference: image.Annotations[referenceAnnotation], Digest: image.Digest,
		})
	}
	return built, nil
}

// Pullspecs maps the names of all built images to their pull specifications.
func Pullspecs(from, registry string) (map[string]string, error) {
	built, err := List(from)
	if err != nil {
		return nil, err
	}
	specs := make(map[string]string, len(built))
	for _, image := range built {
		specs[image.Name] = image.Pullspec(registry)
	}
	return specs, nil
}

// Push copies the images of the OCI layout to the registry, whose certificate was signed by ca. It does not send
// existing blobs again.
func Push(ctx context.Context, from, registry string, ca []byte) error {
	built, err := List(from)
	if err != nil {
		return err
	}
	transport, err := trusting(ca)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	for _, image := range built {
		group.Go(func() error {
			if err := push(ctx, from, image, registry, transport); err != nil {
				return fmt.Errorf("pushing image %s to %s: %w", image.Name, registry, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func push(ctx context.Context, from string, image Built, registry string, transport http.RoundTripper) error {
	content, err := layout.Path(from).Image(image.Digest)
	if err != nil {
		return err
	}
	target, err := name.NewTag(registry + "/" + image.Reference)
	if err != nil {
		return err
	}
	return remote.Write(target, content, remote.WithContext(ctx), remote.WithTransport(transport))
}

func trusting(ca []byte) (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("the registry's CA is not a PEM certificate")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return transport, nil
}

// Seed adds the blobs of the OCI layout to a registry's blob folder, so that Push has no data to send. It creates
// hard links if the file system supports them.
func Seed(from, blobs string) error {
	source := layout.Path(from)
	built, err := List(from)
	if err != nil {
		return err
	}
	for _, image := range built {
		if err := seed(source, image, blobs); err != nil {
			return fmt.Errorf("seeding the registry with image %s: %w", image.Name, err)
		}
	}
	return nil
}

func seed(source layout.Path, image Built, blobs string) error {
	content, err := source.Image(image.Digest)
	if err != nil {
		return err
	}
	manifest, err := content.Manifest()
	if err != nil {
		return err
	}
	for _, blob := range append(manifest.Layers, manifest.Config) {
		if err := linkBlob(source, blob.Digest, blobs); err != nil {
			return err
		}
	}
	return nil
}

// linkBlob does nothing if the link fails: Push sends what is missing.
func linkBlob(source layout.Path, digest v1.Hash, blobs string) error {
	dir := blobs + "/" + digest.Algorithm
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	from := string(source) + "/blobs/" + digest.Algorithm + "/" + digest.Hex
	_ = os.Link(from, dir+"/"+digest.Hex)
	return nil
}
