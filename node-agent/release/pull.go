// SPDX-License-Identifier: Apache-2.0

// Package release brings the programs of a release onto a machine: the kubelet, and the container runtime that it was tested with.
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

// pullTimeout bounds one attempt to pull from one source, over a slow line too.
const pullTimeout = 30 * time.Minute

// pull hands the image to use as this machine's architecture has it, from the first source that works. use reads from the registry.
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
		return fmt.Errorf("nothing may be pulled from the registry of %s", image.Name)
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

// transport trusts what the system does and the source's CAs, and goes through the plan's proxy.
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

// read is a file as the plan has it, or else the machine: a plan is pulled for before it is applied.
func read(h *host.Host, plan *nodeplan.Plan, path string) ([]byte, error) {
	for _, f := range plan.Files {
		if f.Path == path && f.Content != nil {
			return f.Content, nil
		}
	}
	return h.Read(path)
}
