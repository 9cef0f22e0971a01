// SPDX-License-Identifier: Apache-2.0

// Package imageregistry reads images for all programs of this product. Its client uses HTTPS also for private addresses
// and localhost, for which the library would fall back to plain HTTP. It does not trust the sizes that a registry
// reports: manifests, configurations and layers have limits.
package imageregistry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift/hypershift/support/addressguard"
)

// dialTimeout is the timeout of a connection, as in the library's own transport.
const dialTimeout = 30 * time.Second

// Client reads and writes images in registries. It is safe for concurrent use.
type Client struct {
	// Transport sends the requests; nil trusts the CAs of the system, see NewTransport.
	Transport http.RoundTripper
	// Keychain provides credentials; nil means none.
	Keychain authn.Keychain
	// Insecure also allows plain HTTP. It is only for registries that the user declares insecure. It is never for a
	// registry that a tenant chose and that the management cluster calls.
	Insecure bool
	// Backoff configures the retries of requests; the zero value means three attempts within a second.
	Backoff remote.Backoff
}

// NewTransport returns an HTTP transport for registries that trusts the CAs of the system and of the PEM bundle.
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

// Restrict makes a transport refuse the addresses that a guard blocks; nil blocks none.
func Restrict(t *http.Transport, guard *addressguard.Guard) {
	if guard == nil {
		return
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout, Control: guard.Control}
	t.DialContext = dialer.DialContext
}

// Parse validates and parses a pull spec.
func Parse(spec string) (name.Reference, error) { return (&Client{}).Parse(spec) }

// Parse parses a pull spec.
func (c *Client) Parse(spec string) (name.Reference, error) {
	return name.ParseReference(spec, c.names()...)
}

// Repository parses the name of a repository.
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

// Head returns the descriptor of the manifest to which a reference points.
func (c *Client) Head(ctx context.Context, ref name.Reference) (*v1.Descriptor, error) {
	descriptor, err := remote.Head(ref, c.options(ctx)...)
	return descriptor, primary(err)
}

// Get reads the manifest to which a reference points. Callers must use Bound and ConfigFile to read the results of its
// Image and ImageIndex.
func (c *Client) Get(ctx context.Context, ref name.Reference) (*remote.Descriptor, error) {
	descriptor, err := remote.Get(ref, c.options(ctx)...)
	return descriptor, primary(err)
}

// Image reads the image to which a reference points. From an index, it reads the image for the platform. The image has
// limits, see Bound.
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
	return fmt.Errorf("%T is not an image", content)
}

// primary removes the error of the fallback to plain HTTP. The library tries the fallback for private addresses. A
// client that is not insecure refuses it, and for an insecure registry the answer to HTTPS is the relevant one.
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

// primaryError is the error of the first attempt. The library's error type for both attempts does not export them.
type primaryError struct {
	text string
	all  error
}

// Error returns the text of the first attempt's error.
func (e *primaryError) Error() string { return e.text }

// Is checks the causes of all attempts.
func (e *primaryError) Is(target error) bool { return errors.Is(e.all, target) }

// As checks the causes of all attempts. If the attempt without TLS was sent, a registry's answer may belong to that
// attempt, so As ignores answers.
func (e *primaryError) As(target any) bool {
	if _, answer := target.(**transport.Error); answer && !errors.Is(e.all, ErrPlainHTTP) {
		return false
	}
	return errors.As(e.all, target)
}
