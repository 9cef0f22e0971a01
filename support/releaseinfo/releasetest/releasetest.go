// SPDX-License-Identifier: Apache-2.0

// Package releasetest serves release payloads to tests from a real registry in the test's process.
package releasetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/openshift/hypershift/support/releaseinfo"
)

// Registry is a registry with TLS that lives as long as the test.
type Registry struct {
	// Host is host:port, the start of every pull spec.
	Host string
	// CA is the PEM certificate to trust.
	CA []byte

	transport http.RoundTripper
	intercept atomic.Pointer[Interceptor]
	requests  atomic.Int64
}

// Interceptor receives every request first and reports whether it has answered it.
type Interceptor func(http.ResponseWriter, *http.Request) bool

// Intercept sets the interceptor of all requests; nil removes it. Requests in progress may still use the previous one.
func (r *Registry) Intercept(i Interceptor) { r.intercept.Store(&i) }

// Start runs a registry on the loopback address until the test ends.
func Start(t testing.TB) *Registry {
	t.Helper()
	return StartOn(t, "127.0.0.1")
}

// StartOn runs a registry on an address of this machine until the test ends. Container runtimes treat registries on the
// loopback address differently.
func StartOn(t testing.TB, address string) *Registry {
	t.Helper()
	r := &Registry{}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		if i := r.intercept.Load(); i != nil && *i != nil && (*i)(w, req) {
			return
		}
		store.ServeHTTP(w, req)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate(t, address)}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(server.Close)
	r.Host = strings.TrimPrefix(server.URL, "https://")
	r.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	r.transport = server.Client().Transport
	return r
}

// certificate returns a self-signed certificate for the address.
func certificate(t testing.TB, address string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "registry"}, IPAddresses: []net.IP{net.ParseIP(address)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Requests returns the number of HTTP requests that the registry received.
func (r *Registry) Requests() int64 { return r.requests.Load() }

// Provider returns a provider that reads only from this registry and trusts its CA.
func (r *Registry) Provider(t testing.TB) *releaseinfo.Registry {
	t.Helper()
	p, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: r.CA})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// PushRelease pushes a payload to the repository "release", with its version as the tag. It returns the pull spec with
// the tag.
func (r *Registry) PushRelease(t testing.TB, p releaseinfo.Payload) string {
	t.Helper()
	img, err := releaseinfo.Build(p)
	if err != nil {
		t.Fatal(err)
	}
	spec := r.Host + "/release:" + p.Version
	r.Push(t, spec, img)
	return spec
}

// Push pushes an image and returns its pull spec by digest.
func (r *Registry) Push(t testing.TB, spec string, img v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img, remote.WithTransport(r.transport), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return ref.Context().Digest(digest.String()).Name()
}

// PushIndex pushes an index of images and returns its pull spec by digest.
func (r *Registry) PushIndex(t testing.TB, spec string, index v1.ImageIndex) string {
	t.Helper()
	ref, err := name.ParseReference(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index, remote.WithTransport(r.transport), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return ref.Context().Digest(digest.String()).Name()
}
