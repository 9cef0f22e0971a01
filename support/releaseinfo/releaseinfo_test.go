// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
)

func TestParseOverrides(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
		fails      bool
	}{
		{name: "When the text is empty, it should return no overrides", text: "", want: map[string]string{}},
		{name: "When the text is a lone equals sign, it should return no overrides", text: "=", want: map[string]string{}},
		{name: "When there are two pairs, it should return both", text: "a=b, c/d=e:5000/f", want: map[string]string{"a": "b", "c/d": "e:5000/f"}},
		{name: "When a pair has no source, it should return an error", text: "=b", fails: true},
		{name: "When a pair has no destination, it should return an error", text: "a=", fails: true},
		{name: "When a pair has no equals sign, it should return an error", text: "a=b,c", fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := ParseOverrides(tt.text)
			g.Expect(err != nil).To(Equal(tt.fails))
			if !tt.fails {
				g.Expect(got).To(Equal(tt.want))
			}
		})
	}
}

func TestParseMirrors(t *testing.T) {
	g := NewWithT(t)
	got, err := ParseMirrors("a=b,a=c,d=e,=")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal([]Mirror{{Source: "a", Mirrors: []string{"b"}}, {Source: "a", Mirrors: []string{"c"}}, {Source: "d", Mirrors: []string{"e"}}}))
	for _, wrong := range []string{"a", "a=", "=b", "a=b,c"} {
		_, err = ParseMirrors(wrong)
		g.Expect(err).To(MatchError(ContainSubstring("source=mirror")), wrong)
	}
}

func TestOverride(t *testing.T) {
	overrides := map[string]string{"quay.example": "mirror:5000", "quay.example/team": "mirror:5000/elsewhere"}
	tests := []struct{ name, image, want string }{
		{"When a registry matches, it should be replaced", "quay.example/a:1", "mirror:5000/a:1"},
		{"When two prefixes match, it should use the longer one", "quay.example/team/a@sha256:0", "mirror:5000/elsewhere/a@sha256:0"},
		{"When only a part of the registry name matches, it should not be replaced", "quay.example.org/a:1", "quay.example.org/a:1"},
		{"When only a part of the repository name matches, it should use the override of the registry", "quay.example/teams:1", "mirror:5000/teams:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(Override(tt.image, overrides)).To(Equal(tt.want))
		})
	}
}

func TestKeychain(t *testing.T) {
	keychain, err := Keychain([]byte(`{"auths":{
		"registry.example": {"username":"u","password":"registry"},
		"registry.example/team": {"username":"u","password":"team"},
		"https://index.docker.io/v1/": {"username":"u","password":"hub"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, image, want string }{
		{"When only the registry matches, it should use the entry of the registry", "registry.example/other/a", "registry"},
		{"When a path matches, it should use the entry of that path", "registry.example/team/a", "team"},
		{"When only a part of the path matches, it should use the entry of the registry", "registry.example/teams/a", "registry"},
		{"When the image is on Docker Hub, it should use the entry with the old URL", "busybox", "hub"},
		{"When nothing matches, it should be anonymous", "other.example/a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			repository, err := name.NewRepository(tt.image)
			g.Expect(err).NotTo(HaveOccurred())
			auth, err := keychain.Resolve(repository)
			g.Expect(err).NotTo(HaveOccurred())
			cfg, err := auth.Authorization()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cfg.Password).To(Equal(tt.want))
		})
	}
}

func TestDecode(t *testing.T) {
	const stream = `{"kind":"ImageStream","metadata":{"name":"4.19.1"},"spec":{"tags":[
		{"name":"cli","annotations":{"io.openshift.build.versions":"kubernetes=1.32.5,kubectl=1.32.5"},
		 "from":{"kind":"DockerImage","name":"quay.example/cli@sha256:1"}},
		{"name":"alias","from":{"kind":"ImageStreamTag","name":"cli"}}]}}`
	tests := []struct {
		name     string
		stream   string
		metadata string
		want     Payload
		fails    bool
	}{
		{
			name: "When there is no metadata, it should use the name of the stream as version", stream: stream,
			want: Payload{
				Version: "4.19.1", Distribution: OpenShift, Architecture: "arm64",
				Components:        map[string]string{"cli": "quay.example/cli@sha256:1"},
				ComponentVersions: map[string]string{"kubernetes": "1.32.5", "kubectl": "1.32.5"},
			},
		},
		{
			name: "When the metadata has these fields, it should use them instead of the stream's", stream: stream,
			metadata: `{"kind":"cincinnati-metadata-v0","version":"4.19.2","metadata":{"io.hypershift.distribution":"kubernetes","release.openshift.io/architecture":"multi"}}`,
			want: Payload{
				Version: "4.19.2", Distribution: Kubernetes, Architecture: ArchitectureMulti,
				Components:        map[string]string{"cli": "quay.example/cli@sha256:1"},
				ComponentVersions: map[string]string{"kubernetes": "1.32.5", "kubectl": "1.32.5"},
			},
		},
		{name: "When the stream is not JSON, it should return an error", stream: "x", fails: true},
		{name: "When the metadata is not JSON, it should return an error", stream: stream, metadata: "x", fails: true},
		{name: "When there are no components, it should return an error", stream: `{"metadata":{"name":"1"}}`, fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			files := map[string][]byte{referencesFile: []byte(tt.stream)}
			if tt.metadata != "" {
				files[metadataFile] = []byte(tt.metadata)
			}
			got, err := decode(files, "arm64")
			if tt.fails {
				g.Expect(errors.Is(err, errNotARelease)).To(BeTrue(), "%v", err)
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestBuildIsReproducible(t *testing.T) {
	g := NewWithT(t)
	p := Payload{Version: "1.0.0", Distribution: Kubernetes, Components: map[string]string{"a": "b", "c": "d", "e": "f"}}
	first, err := Build(p)
	g.Expect(err).NotTo(HaveOccurred())
	second, err := Build(p)
	g.Expect(err).NotTo(HaveOccurred())
	a, _ := first.Digest()
	b, _ := second.Digest()
	g.Expect(a).To(Equal(b))
}

func TestReasonOf(t *testing.T) {
	g := NewWithT(t)
	wrapped := fmt.Errorf("reconcile: %w", &Error{Reason: ReasonNotFound, Image: "a", Err: errors.New("gone")})
	g.Expect(ReasonOf(wrapped)).To(Equal(ReasonNotFound))
	g.Expect(ReasonOf(errors.New("other"))).To(BeEmpty())
}

func TestPinned(t *testing.T) {
	const digest = "sha256:0123"
	for _, tt := range []struct{ name, spec, digest, want string }{
		{"When the pull spec has a tag, it should be replaced by the digest", "registry.example:5000/release:1.36.3", digest, "registry.example:5000/release@" + digest},
		{"When the pull spec has neither tag nor digest, it should get the digest", "registry.example:5000/release", digest, "registry.example:5000/release@" + digest},
		{"When the pull spec has a digest, it should not change", "registry.example/release@sha256:4567", digest, "registry.example/release@sha256:4567"},
		{"When the digest is unknown, it should not change", "registry.example/release:1.36.3", "", "registry.example/release:1.36.3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(New(tt.spec, Payload{Digest: tt.digest}).Pinned()).To(Equal(tt.want))
		})
	}
}
