// SPDX-License-Identifier: Apache-2.0

// Package release installs the programs of a release on a machine: the kubelet, and the container runtime that was
// tested with it.
package release

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/net/http/httpproxy"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// pullTimeout limits one attempt to pull from one source. It allows for a slow connection.
const pullTimeout = 30 * time.Minute

// pull pulls the image for the architecture of this machine from the first source that works, and calls use with it.
// Reading the image in use downloads its layers.
func pull(ctx context.Context, h *host.Host, plan *nodeplan.Plan, image nodeplan.Image, use func(v1.Image) error) error {
	keychain, err := releaseinfo.Keychain(plan.PullSecret)
	if err != nil {
		return err
	}
	var failures []error
	for _, source := range image.Sources {
		err := pullFrom(ctx, h, plan, source, keychain, use)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("pulling %s: %w", source.Image, err))
	}
	if len(failures) == 0 {
		return fmt.Errorf("no source is permitted for image %s", image.Name)
	}
	return errors.Join(failures...)
}

func pullFrom(ctx context.Context, h *host.Host, plan *nodeplan.Plan, source nodeplan.Source, keychain authn.Keychain, use func(v1.Image) error) error {
	transport, err := transport(h, plan, source)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	registry := &imageregistry.Client{Transport: transport, Keychain: keychain, Insecure: source.Insecure}
	ref, err := registry.Parse(source.Image)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	image, err := registry.Image(ctx, ref, v1.Platform{OS: "linux", Architecture: runtime.GOARCH})
	if err != nil {
		return err
	}
	return use(image)
}

// transport returns a transport that trusts the CAs of the system and of the source, and uses the proxy of the plan.
func transport(h *host.Host, plan *nodeplan.Plan, source nodeplan.Source) (*http.Transport, error) {
	t, err := imageregistry.NewTransport(nil, source.Insecure)
	if err != nil {
		return nil, err
	}
	proxy := plan.Proxy
	through := (&httpproxy.Config{HTTPProxy: proxy.HTTP, HTTPSProxy: proxy.HTTPS, NoProxy: proxy.NoProxy}).ProxyFunc()
	t.Proxy = func(r *http.Request) (*url.URL, error) { return through(r.URL) }
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, path := range source.CAs {
		pem, err := read(h, plan, path)
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", path)
		}
	}
	t.TLSClientConfig.RootCAs = roots
	return t, nil
}

// read returns a file from the plan, or else from the machine. Images are pulled before their plan is applied.
func read(h *host.Host, plan *nodeplan.Plan, path string) ([]byte, error) {
	for _, f := range plan.Files {
		if f.Path == path && f.Content != nil {
			return f.Content, nil
		}
	}
	return h.Read(path)
}
