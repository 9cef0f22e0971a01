// SPDX-License-Identifier: Apache-2.0

package imageregistry_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// plain starts a registry without TLS on the loopback address. It counts the requests in asked.
func plain(t *testing.T) (host string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), asked
}

func TestNoFallbackToPlainHTTP(t *testing.T) {
	keychain := authn.NewMultiKeychain()
	for _, as := range []string{"127.0.0.1", "localhost"} {
		t.Run("a registry on "+as+" without TLS gets no request", func(t *testing.T) {
			g := NewWithT(t)
			host, asked := plain(t)
			client := &imageregistry.Client{Keychain: keychain, Backoff: remote.Backoff{Steps: 1}}
			ref, err := client.Parse(strings.Replace(host, "127.0.0.1", as, 1) + "/release:1")
			g.Expect(err).NotTo(HaveOccurred())
			_, err = client.Get(t.Context(), ref)
			g.Expect(err).To(MatchError(And(ContainSubstring("HTTP response to HTTPS client"),
				Not(ContainSubstring("http://")))))
			_, err = client.Head(t.Context(), ref)
			g.Expect(err).To(HaveOccurred())
			g.Expect(client.Write(t.Context(), ref, image(t))).NotTo(Succeed())
			g.Expect(asked.Load()).To(BeZero())
		})
	}
	t.Run("a registry that the user marks as insecure is called", func(t *testing.T) {
		g := NewWithT(t)
		host, asked := plain(t)
		client := &imageregistry.Client{Insecure: true, Backoff: remote.Backoff{Steps: 1}}
		ref, err := client.Parse(host + "/release:1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(client.Write(t.Context(), ref, image(t))).To(Succeed())
		_, err = client.Image(t.Context(), ref, v1.Platform{OS: "linux", Architecture: "amd64"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(asked.Load()).NotTo(BeZero())
	})
	t.Run("a redirect to plain HTTP is not followed", func(t *testing.T) {
		g := NewWithT(t)
		host, asked := plain(t)
		secured := releasetest.Start(t)
		secured.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/manifests/") {
				w.Header().Set("Location", "http://"+host+r.URL.Path)
				w.WriteHeader(http.StatusTemporaryRedirect)
				return true
			}
			return false
		})
		client := trusting(t, secured)
		ref, err := client.Parse(secured.Host + "/release:1")
		g.Expect(err).NotTo(HaveOccurred())
		_, err = client.Get(t.Context(), ref)
		g.Expect(errors.Is(err, imageregistry.ErrPlainHTTP)).To(BeTrue(), "%v", err)
		g.Expect(asked.Load()).To(BeZero())
	})
}

func image(t *testing.T) v1.Image {
	t.Helper()
	made, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func trusting(t *testing.T, registry *releasetest.Registry) *imageregistry.Client {
	t.Helper()
	carrier, err := imageregistry.NewTransport(registry.CA, false)
	if err != nil {
		t.Fatal(err)
	}
	return &imageregistry.Client{Transport: carrier, Backoff: remote.Backoff{Steps: 1}}
}

func TestMetadataIsBounded(t *testing.T) {
	g := NewWithT(t)
	secured := releasetest.Start(t)
	secured.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte(`{"schemaVersion": 2, "annotations": {"a": "`))
		_, _ = w.Write([]byte(strings.Repeat("x", imageregistry.MaxMetadata)))
		_, _ = w.Write([]byte(`"}}`))
		return true
	})
	client := trusting(t, secured)
	ref, err := client.Parse(secured.Host + "/release:1")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.Get(t.Context(), ref)
	g.Expect(err).To(MatchError(And(ContainSubstring("is larger than"), ContainSubstring("/v2/release/manifests/1"))))
}

func TestAnswersOfRegistries(t *testing.T) {
	g := NewWithT(t)
	secured := releasetest.Start(t)
	client := trusting(t, secured)
	ref, err := client.Parse(secured.Host + "/none:1")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.Get(t.Context(), ref)
	var answer *transport.Error
	g.Expect(errors.As(err, &answer)).To(BeTrue(), "%v", err)
	g.Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
	secured.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	_, err = client.Get(t.Context(), ref)
	g.Expect(errors.As(err, &answer)).To(BeTrue(), "%v", err)
	g.Expect(answer.StatusCode).To(Equal(http.StatusForbidden))
	untrusting := &imageregistry.Client{Backoff: remote.Backoff{Steps: 1}}
	_, err = untrusting.Get(t.Context(), ref)
	g.Expect(err).To(MatchError(And(ContainSubstring("certificate"), Not(ContainSubstring("plain HTTP")))))
	g.Expect(errors.As(err, &answer)).To(BeFalse())
	g.Expect(client.Write(t.Context(), ref, nothing{})).To(MatchError(ContainSubstring("is not an image")))
}

type nothing struct{ remote.Taggable }
