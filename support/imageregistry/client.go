// SPDX-License-Identifier: Apache-2.0

// Package imageregistry is the only way by which our programs read images. Its client speaks HTTPS, also to private
// addresses and to localhost, where the library would fall back to plain HTTP. What a registry says of sizes is not
// trusted: manifests, configurations and layers have bounds.
package imageregistry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Client reads images from registries, and writes them. It is safe for concurrent use.
type Client struct {
	// Transport carries the requests; nil trusts the CAs of the system, see NewTransport.
	Transport http.RoundTripper
	// Keychain finds credentials; nil means none.
	Keychain authn.Keychain
	// Insecure allows plain HTTP too. It is for a registry that its user called insecure, and never for one that a
	// tenant chose and the management cluster calls.
	Insecure bool
	// Backoff says how requests are repeated; the zero value means three attempts within a second.
	Backoff remote.Backoff
}

// NewTransport makes an HTTP transport for registries that trusts the system's CAs and those of the PEM bundle.
// insecure accepts any certificate.
func NewTransport(caBundle []byte, insecure bool) (*http.Transport, error) {
	base, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("the default registry transport is a %T", remote.DefaultTransport)
	}
	t := base.Clone()
	//nolint:gosec // Only where the user says that a registry is insecure.
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}
	if len(caBundle) == 0 {
		return t, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(caBundle) {
		return nil, errors.New("the registry CA bundle holds no PEM certificate")
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// Parse checks the spelling of a pull spec.
func Parse(spec string) (name.Reference, error) { return (&Client{}).Parse(spec) }

// Parse reads a pull spec.
func (c *Client) Parse(spec string) (name.Reference, error) {
	return name.ParseReference(spec, c.names()...)
}

// Repository reads the name of a repository.
func (c *Client) Repository(spec string) (name.Repository, error) {
	return name.NewRepository(spec, c.names()...)
}

func (c *Client) names() []name.Option {
	if c.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

func (c *Client) options(ctx context.Context) []remote.Option {
	carrier := c.Transport
	if carrier == nil {
		carrier = remote.DefaultTransport
	}
	backoff := c.Backoff
	if backoff.Steps == 0 {
		backoff = remote.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Jitter: 0.2, Steps: 3}
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithRetryBackoff(backoff),
		remote.WithTransport(&checked{next: carrier, plainHTTP: c.Insecure}),
	}
	if c.Keychain != nil {
		options = append(options, remote.WithAuthFromKeychain(c.Keychain))
	}
	return options
}

// Head asks which manifest a reference names.
func (c *Client) Head(ctx context.Context, ref name.Reference) (*v1.Descriptor, error) {
	descriptor, err := remote.Head(ref, c.options(ctx)...)
	return descriptor, primary(err)
}

// Get reads the manifest that a reference names. What its Image and ImageIndex return must be read through Bound and
// ConfigFile.
func (c *Client) Get(ctx context.Context, ref name.Reference) (*remote.Descriptor, error) {
	descriptor, err := remote.Get(ref, c.options(ctx)...)
	return descriptor, primary(err)
}

// Image reads the image that a reference names, in an index the one for a platform. It is bounded, see Bound.
func (c *Client) Image(ctx context.Context, ref name.Reference, platform v1.Platform) (v1.Image, error) {
	image, err := remote.Image(ref, append(c.options(ctx), remote.WithPlatform(platform))...)
	if err != nil {
		return nil, primary(err)
	}
	return Bound(image, ref.String()), nil
}

// Write pushes an image or an index.
func (c *Client) Write(ctx context.Context, target name.Reference, content remote.Taggable) error {
	switch content := content.(type) {
	case v1.ImageIndex:
		return primary(remote.WriteIndex(target, content, c.options(ctx)...))
	case v1.Image:
		return primary(remote.Write(target, content, c.options(ctx)...))
	}
	return fmt.Errorf("%T is no image", content)
}

// primary drops the answer to a fallback without TLS: the library asks private addresses for it, which a client that
// is not insecure refuses, and an insecure registry's answer to HTTPS is what matters.
func primary(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, fallback := range []string{`; GET http://`, `; Get "http://`} {
		if first, _, cut := strings.Cut(text, fallback); cut {
			return &primaryError{text: first, all: err}
		}
	}
	return err
}

// primaryError is the failure of the first attempt. The library's type of both keeps them to itself.
type primaryError struct {
	text string
	all  error
}

// Error is that of the first attempt.
func (e *primaryError) Error() string { return e.text }

// Is looks for a cause of any attempt.
func (e *primaryError) Is(target error) bool { return errors.Is(e.all, target) }

// As looks for a cause of any attempt. Where the attempt without TLS was sent, an answer of the registry may be one to
// that, and does not count.
func (e *primaryError) As(target any) bool {
	if _, answer := target.(**transport.Error); answer && !errors.Is(e.all, ErrPlainHTTP) {
		return false
	}
	return errors.As(e.all, target)
}
