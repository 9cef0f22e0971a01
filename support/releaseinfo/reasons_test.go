// SPDX-License-Identifier: Apache-2.0

package releaseinfo_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// answer makes a registry answer all requests with the given status.
func answer(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(code)
		return true
	}
}

func TestReasons(t *testing.T) {
	registry := releasetest.Start(t)
	spec := registry.PushRelease(t, kubernetesPayload())
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx       context.Context
		intercept func(http.ResponseWriter, *http.Request) bool
		want      releaseinfo.Reason
	}{
		"the registry forbids":                           {t.Context(), answer(http.StatusForbidden), releaseinfo.ReasonUnauthorized},
		"the registry has an internal error":             {t.Context(), answer(http.StatusInternalServerError), releaseinfo.ReasonUnreachable},
		"the registry limits the rate of requests":       {t.Context(), answer(http.StatusTooManyRequests), releaseinfo.ReasonUnreachable},
		"the registry answers with an unexpected status": {t.Context(), answer(http.StatusTeapot), releaseinfo.ReasonUnreachable},
		"the caller has cancelled":                       {cancelled, nil, releaseinfo.ReasonUnreachable},
		"a blob of the image is missing":                 {t.Context(), blobsAnswer(http.StatusNotFound), releaseinfo.ReasonNotFound},
		"access to the blobs is forbidden":               {t.Context(), blobsAnswer(http.StatusForbidden), releaseinfo.ReasonUnauthorized},
	} {
		t.Run("When "+name+", both lookups should return the matching reason", func(t *testing.T) {
			g := NewWithT(t)
			registry.Intercept(tc.intercept)
			provider := registry.Provider(t)
			_, err := provider.Lookup(tc.ctx, spec, nil)
			g.Expect(releaseinfo.ReasonOf(err)).To(Equal(tc.want), "%v", err)
			g.Expect(errors.Unwrap(err)).To(HaveOccurred(), "the cause is kept")
			_, err = provider.Labels(tc.ctx, spec, nil)
			g.Expect(releaseinfo.ReasonOf(err)).To(Equal(tc.want), "%v", err)

			registry.Intercept(nil)
			_, err = provider.Lookup(t.Context(), spec, nil)
			g.Expect(err).NotTo(HaveOccurred(), "a failure is not remembered")
			labels, err := provider.Labels(t.Context(), spec, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(labels).To(HaveKeyWithValue("io.openshift.release", "1.36.3"))
		})
	}
}

func blobsAnswer(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/blobs/") && answer(code)(w, r)
	}
}

// TestForbiddenSource checks that a forbidden source receives no request, not even if its mirror lacks the image.
func TestForbiddenSource(t *testing.T) {
	g := NewWithT(t)
	source, mirror := releasetest.Start(t), releasetest.Start(t)
	spec := source.PushRelease(t, kubernetesPayload())
	asked := source.Requests()
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: append(source.CA, mirror.CA...), Mirrors: []releaseinfo.Mirror{
		{Source: source.Host, Mirrors: []string{mirror.Host}, Only: true}}})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = provider.Lookup(t.Context(), spec, nil)
	g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonNotFound))
	g.Expect(err).To(MatchError(ContainSubstring(spec)), "it names the image as the user does")
	g.Expect(source.Requests()).To(Equal(asked))

	mirror.PushRelease(t, kubernetesPayload())
	found, err := provider.Lookup(t.Context(), spec, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.PullSpec()).To(Equal(spec))
	g.Expect(source.Requests()).To(Equal(asked))
}

// TestErrorOfTheSource checks which error is reported when all locations fail. The error of the location that the user
// named helps most.
func TestErrorOfTheSource(t *testing.T) {
	g := NewWithT(t)
	source, mirror := releasetest.Start(t), releasetest.Start(t)
	source.Intercept(answer(http.StatusUnauthorized))
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: append(source.CA, mirror.CA...), Mirrors: []releaseinfo.Mirror{
		{Source: source.Host, Mirrors: []string{mirror.Host}}}})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = provider.Lookup(t.Context(), source.Host+"/release:1", nil)
	g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnauthorized), "%v", err)
	g.Expect(mirror.Requests()).NotTo(BeZero())
}

func TestTags(t *testing.T) {
	registry := releasetest.Start(t)
	spec := registry.PushRelease(t, kubernetesPayload())
	moved := kubernetesPayload()
	moved.Components = map[string]string{"etcd": "registry.example/etcd:4"}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: registry.CA, Clock: clock, TagTTL: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	g := NewWithT(t)
	etcd := func(spec string) string {
		release, err := provider.Lookup(t.Context(), spec, nil)
		g.Expect(err).NotTo(HaveOccurred())
		image, _ := release.ComponentImage("etcd")
		return image
	}
	before := etcd(spec)
	first, err := provider.Lookup(t.Context(), spec, nil)
	g.Expect(err).NotTo(HaveOccurred())
	registry.PushRelease(t, moved)
	clock.SetTime(clock.Now().Add(10*time.Minute - time.Second))
	g.Expect(etcd(spec)).To(Equal(before), "a tag is believed for its time")
	clock.SetTime(clock.Now().Add(time.Second))
	g.Expect(etcd(spec)).To(Equal("registry.example/etcd:4"))
	g.Expect(etcd(first.Pinned())).To(Equal(before), "a digest says what it said")

	registry.Intercept(answer(http.StatusServiceUnavailable))
	g.Expect(etcd(first.Pinned())).To(Equal(before), "what has a digest and was read needs no registry")
	clock.SetTime(clock.Now().Add(time.Hour))
	_, err = provider.Lookup(t.Context(), spec, nil)
	g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnreachable), "where a tag points may have changed")
}

// TestCacheHoldsNoMore checks the cache's limit. A user with many images must not fill the operator's memory.
func TestCacheHoldsNoMore(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: registry.CA, CacheSize: 1})
	g.Expect(err).NotTo(HaveOccurred())
	other := kubernetesPayload()
	other.Version = "1.36.4"
	first, second := registry.PushRelease(t, kubernetesPayload()), registry.PushRelease(t, other)
	for range 2 {
		for _, spec := range []string{first, second} {
			before := registry.Requests()
			release, err := provider.Lookup(t.Context(), spec, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(spec).To(HaveSuffix(":" + release.Version()))
			g.Expect(provider.Lookup(t.Context(), spec, nil)).NotTo(BeNil())
			g.Expect(registry.Requests()).To(BeNumerically(">", before), "the other one took its place")
		}
	}
}

// keychain holds one set of credentials for all registries.
type keychain struct{ asked atomic.Int32 }

func (k *keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	k.asked.Add(1)
	return authn.FromConfig(authn.AuthConfig{Username: "operator", Password: "sesame"}), nil
}

// TestKeychainOfTheOperator checks that a tenant with a pull secret does not read images with the operator's
// credentials.
func TestKeychainOfTheOperator(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	spec := registry.PushRelease(t, kubernetesPayload())
	registry.Intercept(requirePassword("operator", "sesame"))
	own := &keychain{}
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: registry.CA, Keychain: own})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = provider.Lookup(t.Context(), spec, nil)
	g.Expect(err).NotTo(HaveOccurred())
	asked := own.asked.Load()
	for _, secret := range [][]byte{[]byte(`{"auths":{}}`), dockerConfig(registry.Host, "tenant", "guess")} {
		_, err = provider.Lookup(t.Context(), spec, secret)
		g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnauthorized), "%v", err)
	}
	g.Expect(own.asked.Load()).To(Equal(asked))
}

func TestInsecureRegistries(t *testing.T) {
	secured := releasetest.Start(t)
	spec := secured.PushRelease(t, kubernetesPayload())
	plain := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(plain.Close)
	missing := strings.TrimPrefix(plain.URL, "http://") + "/release:1"
	for _, insecure := range []bool{true, false} {
		provider, err := releaseinfo.NewRegistry(releaseinfo.Options{Insecure: insecure, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		g := NewWithT(t)
		_, err = provider.Lookup(t.Context(), spec, nil)
		g.Expect(err == nil).To(Equal(insecure), "a certificate that nobody vouches for: %v", err)
	}
	t.Run("When a registry does not use TLS, an insecure lookup should reach it", func(t *testing.T) {
		provider, err := releaseinfo.NewRegistry(releaseinfo.Options{Insecure: true})
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = provider.Lookup(t.Context(), missing, nil)
		g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonNotFound), "%v", err)
	})
}
