// SPDX-License-Identifier: Apache-2.0

package releaseinfo_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

func kubernetesPayload() releaseinfo.Payload {
	return releaseinfo.Payload{
		Version:           "1.36.3",
		Distribution:      releaseinfo.Kubernetes,
		Components:        map[string]string{"etcd": "registry.example/etcd:3.6", "node": "registry.example/node:1.36.3"},
		ComponentVersions: map[string]string{"kubernetes": "1.36.3", "etcd": "3.6.8"},
	}
}

func TestLookup(t *testing.T) {
	tests := []struct {
		name    string
		payload releaseinfo.Payload
		want    releaseinfo.Distribution
	}{
		{"When the payload is Kubernetes, it should return that distribution", kubernetesPayload(), releaseinfo.Kubernetes},
		{
			"When the payload names no distribution, it should return OpenShift",
			releaseinfo.Payload{Version: "4.19.0", Components: map[string]string{"hypershift": "quay.example/h@sha256:1"}},
			releaseinfo.OpenShift,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			registry := releasetest.Start(t)
			spec := registry.PushRelease(t, tt.payload)

			release, err := registry.Provider(t).Lookup(t.Context(), spec, nil)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(release.PullSpec()).To(Equal(spec))
			g.Expect(release.Pinned()).To(MatchRegexp(`/release@sha256:[0-9a-f]{64}$`))
			g.Expect(release.Version()).To(Equal(tt.payload.Version))
			g.Expect(release.Distribution()).To(Equal(tt.want))
			g.Expect(release.Architecture()).To(Equal("amd64"))
			g.Expect(release.ComponentImages()).To(Equal(tt.payload.Components))
			if tt.payload.ComponentVersions != nil {
				g.Expect(release.ComponentVersions()).To(Equal(tt.payload.ComponentVersions))
			}
			_, ok := release.ComponentImage("nonesuch")
			g.Expect(ok).To(BeFalse())
		})
	}
}

func TestLookupIndex(t *testing.T) {
	t.Run("When the payload is an index of architectures, it should report multi", func(t *testing.T) {
		g := NewWithT(t)
		registry := releasetest.Start(t)
		index := v1.ImageIndex(empty.Index)
		for _, arch := range []string{"amd64", "arm64"} {
			p := kubernetesPayload()
			p.Architecture = arch
			img, err := releaseinfo.Build(p)
			g.Expect(err).NotTo(HaveOccurred())
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add:        img,
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
			})
		}
		spec := registry.PushIndex(t, registry.Host+"/release:multi", index)

		release, err := registry.Provider(t).Lookup(t.Context(), spec, nil)

		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(release.Architecture()).To(Equal(releaseinfo.ArchitectureMulti))
	})
}

func TestLabels(t *testing.T) {
	t.Run("When an image is not a release, it should read its labels once", func(t *testing.T) {
		g := NewWithT(t)
		registry := releasetest.Start(t)
		noise, err := random.Image(64, 1)
		g.Expect(err).NotTo(HaveOccurred())
		labelled, err := mutate.Config(noise, v1.Config{Labels: map[string]string{"able": "true"}})
		g.Expect(err).NotTo(HaveOccurred())
		spec, provider := registry.Push(t, registry.Host+"/operator:1", labelled), registry.Provider(t)
		for range 2 {
			g.Expect(provider.Labels(t.Context(), spec, nil)).To(Equal(map[string]string{"able": "true"}))
		}
		asked := registry.Requests()
		g.Expect(provider.Labels(t.Context(), spec, nil)).To(HaveLen(1))
		g.Expect(registry.Requests()).To(Equal(asked))
		_, err = provider.Labels(t.Context(), registry.Host+"/operator:none", nil)
		g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonNotFound))
	})
}

func TestLookupErrors(t *testing.T) {
	registry := releasetest.Start(t)
	noise, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	notARelease := registry.Push(t, registry.Host+"/noise:latest", noise)
	private := registry.Host + "/private/release:1"

	tests := []struct {
		name       string
		image      string
		pullSecret string
		intercept  func(http.ResponseWriter, *http.Request) bool
		timeout    time.Duration
		reason     releaseinfo.Reason
		says       string
	}{
		{
			name: "When the tag does not exist, it should report NotFound", image: registry.Host + "/release:nope",
			reason: releaseinfo.ReasonNotFound, says: "check the repository, tag or digest",
		},
		{
			name: "When the image is not a release, it should report NotARelease", image: notARelease,
			reason: releaseinfo.ReasonNotARelease, says: "hypershift release build",
		},
		{
			name: "When the registry requires credentials, it should report Unauthorized", image: private,
			intercept: func(w http.ResponseWriter, req *http.Request) bool {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return true
			},
			reason: releaseinfo.ReasonUnauthorized, says: "add credentials for the registry to the pull secret",
		},
		{
			name: "When the registry does not answer, it should report Unreachable", image: registry.Host + "/release:slow",
			intercept: func(_ http.ResponseWriter, req *http.Request) bool { <-req.Context().Done(); return true },
			timeout:   500 * time.Millisecond,
			reason:    releaseinfo.ReasonUnreachable, says: "check that the registry is up",
		},
		{
			name: "When the registry refuses connections, it should report Unreachable", image: "127.0.0.1:1/release:1", timeout: 500 * time.Millisecond,
			reason: releaseinfo.ReasonUnreachable, says: "check that the registry is up",
		},
		{
			name: "When the pull spec is malformed, it should report InvalidReference", image: "Not An Image",
			reason: releaseinfo.ReasonInvalidReference, says: "check the spelling",
		},
		{
			name: "When the pull secret is malformed, it should report InvalidReference", image: registry.Host + "/release:1",
			pullSecret: `{"auths": sesame`, reason: releaseinfo.ReasonInvalidReference, says: "not a valid .dockerconfigjson",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			registry.Intercept(tt.intercept)
			provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: registry.CA, Timeout: tt.timeout})
			g.Expect(err).NotTo(HaveOccurred())

			_, err = provider.Lookup(t.Context(), tt.image, []byte(tt.pullSecret))

			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(releaseinfo.ReasonOf(err)).To(Equal(tt.reason))
			g.Expect(err.Error()).To(ContainSubstring(tt.image))
			g.Expect(err.Error()).NotTo(ContainSubstring("sesame"))
		})
	}
}

func TestMirrorThatHangs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	registry := releasetest.Start(t)
	spec := registry.PushRelease(t, kubernetesPayload())
	registry.Intercept(func(_ http.ResponseWriter, req *http.Request) bool {
		hangs := strings.Contains(req.URL.Path, "/hangs/")
		if hangs {
			<-req.Context().Done()
		}
		return hangs
	})
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: registry.CA, Timeout: 5 * time.Second,
		Mirrors: []releaseinfo.Mirror{{Source: registry.Host, Mirrors: []string{registry.Host + "/hangs"}}}})
	g.Expect(err).NotTo(HaveOccurred())
	release, err := provider.Lookup(t.Context(), spec, nil)
	g.Expect(err).NotTo(HaveOccurred(), "the source has its own time")
	g.Expect(release.Version()).To(Equal("1.36.3"))
}

func TestCredentials(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	spec := registry.PushRelease(t, kubernetesPayload())
	registry.Intercept(requirePassword("reader", "sesame"))
	provider := registry.Provider(t)

	_, err := provider.Lookup(t.Context(), spec, dockerConfig(registry.Host, "reader", "sesame"))
	g.Expect(err).NotTo(HaveOccurred(), "the right password must be accepted")

	_, err = provider.Lookup(t.Context(), spec, dockerConfig(registry.Host, "reader", "guess"))
	g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnauthorized), "the cache must not serve who may not pull")
}

func requirePassword(user, password string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, req *http.Request) bool {
		if u, p, ok := req.BasicAuth(); ok && u == user && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

func dockerConfig(host, user, password string) []byte {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth)
}

func TestCache(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	spec := registry.PushRelease(t, kubernetesPayload())
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: registry.CA, Clock: clock})
	g.Expect(err).NotTo(HaveOccurred())
	lookup := func() (*releaseinfo.ReleaseImage, int64) {
		before := registry.Requests()
		release, err := provider.Lookup(t.Context(), spec, nil)
		g.Expect(err).NotTo(HaveOccurred())
		return release, registry.Requests() - before
	}

	_, requests := lookup()
	g.Expect(requests).To(BeNumerically(">", 0))
	release, requests := lookup()
	g.Expect(requests).To(BeZero(), "a payload that was just read comes from the cache")
	release.ComponentImages()["etcd"] = "changed"
	release, _ = lookup()
	g.Expect(release.ComponentImages()).To(HaveKeyWithValue("etcd", "registry.example/etcd:3.6"))

	moved := kubernetesPayload()
	moved.Components = map[string]string{"etcd": "registry.example/etcd:4"}
	registry.PushRelease(t, moved)
	clock.SetTime(clock.Now().Add(time.Hour))
	release, _ = lookup()
	g.Expect(release.ComponentImages()).To(Equal(moved.Components), "a tag that was moved is followed")
}

func TestOverridesAndMirrors(t *testing.T) {
	registry := releasetest.Start(t)
	registry.PushRelease(t, kubernetesPayload())
	tests := []struct {
		name    string
		image   string
		options releaseinfo.Options
		etcd    string
	}{
		{
			name:    "When a registry is overridden, it should read from the override and rename the components",
			image:   "registry.example/release:1.36.3",
			options: releaseinfo.Options{Overrides: map[string]string{"registry.example": registry.Host}},
			etcd:    registry.Host + "/etcd:3.6",
		},
		{
			name:  "When a mirror has the image, it should read from the mirror and keep the names",
			image: "nowhere.invalid/product/release:1.36.3",
			options: releaseinfo.Options{Mirrors: []releaseinfo.Mirror{
				{Source: "nowhere.invalid/product", Mirrors: []string{registry.Host + "/empty", registry.Host}},
			}},
			etcd: "registry.example/etcd:3.6",
		},
		{
			name:    "When no mirror has the image, it should read from the source",
			image:   registry.Host + "/release:1.36.3",
			options: releaseinfo.Options{Mirrors: []releaseinfo.Mirror{{Source: registry.Host, Mirrors: []string{registry.Host + "/empty"}}}},
			etcd:    "registry.example/etcd:3.6",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			tt.options.CABundle = registry.CA
			provider, err := releaseinfo.NewRegistry(tt.options)
			g.Expect(err).NotTo(HaveOccurred())

			release, err := provider.Lookup(t.Context(), tt.image, nil)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(release.PullSpec()).To(Equal(tt.image))
			g.Expect(release.ComponentImages()).To(HaveKeyWithValue("etcd", tt.etcd))
		})
	}
}

func TestCABundle(t *testing.T) {
	g := NewWithT(t)
	_, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: []byte("no certificate")})
	g.Expect(err).To(MatchError(ContainSubstring("no PEM certificate")))

	registry := releasetest.Start(t)
	spec := registry.PushRelease(t, kubernetesPayload())
	untrusting, err := releaseinfo.NewRegistry(releaseinfo.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = untrusting.Lookup(context.Background(), spec, nil)
	g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnreachable))
}
