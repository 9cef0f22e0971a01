// SPDX-License-Identifier: Apache-2.0

package nodeinput_test

import (
	"testing"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestReadRegistries(t *testing.T) {
	image := func(sources configv1.RegistrySources) *configv1.ImageSpec {
		return &configv1.ImageSpec{RegistrySources: sources}
	}
	mirrored := []releaseinfo.Mirror{{Source: "a.example", Mirrors: []string{"b.example"}}}
	const node = "a.example/node:1"
	for _, tc := range []struct {
		name    string
		image   *configv1.ImageSpec
		mirrors []releaseinfo.Mirror
		want    nodeinput.Registries
		refusal string
	}{
		{name: "When nothing is configured, it should allow all registries", want: nodeinput.Registries{Hosts: map[string]nodeinput.Registry{}}},
		{name: "When one registry is insecure and another is blocked, it should return both",
			image: image(configv1.RegistrySources{InsecureRegistries: []string{"lab.example:5000"}, BlockedRegistries: []string{"c.example"}}),
			want:  nodeinput.Registries{Hosts: map[string]nodeinput.Registry{"lab.example:5000": {Insecure: true}, "c.example": {Blocked: true}}}},
		{name: "When some registries are allowed, it should block all others, also those with other settings",
			image:   image(configv1.RegistrySources{AllowedRegistries: []string{"a.example"}, InsecureRegistries: []string{"lab.example"}}),
			mirrors: mirrored,
			want: nodeinput.Registries{OnlyHosts: true, Hosts: map[string]nodeinput.Registry{
				"a.example": {Mirrors: []string{"https://b.example/v2"}}, "lab.example": {Insecure: true, Blocked: true}}}},
		{name: "When the registry of the node image is blocked but mirrored, it should be accepted",
			image: image(configv1.RegistrySources{BlockedRegistries: []string{"a.example"}}), mirrors: mirrored,
			want: nodeinput.Registries{Hosts: map[string]nodeinput.Registry{"a.example": {Mirrors: []string{"https://b.example/v2"}, Blocked: true}}}},
		{name: "When only the mirrors of a registry may be used, it should block the registry itself",
			mirrors: []releaseinfo.Mirror{{Source: "a.example", Mirrors: []string{"b.example"}, Only: true}},
			want:    nodeinput.Registries{Hosts: map[string]nodeinput.Registry{"a.example": {Mirrors: []string{"https://b.example/v2"}, Blocked: true}}}},
		{name: "When the registry of the node image is blocked, it should return an error", image: image(configv1.RegistrySources{BlockedRegistries: []string{"a.example"}}),
			refusal: "forbids a.example, which the image a.example/node:1"},
		{name: "When the registry of the node image is not among the allowed ones, it should return an error",
			image: image(configv1.RegistrySources{AllowedRegistries: []string{"c.example"}}), refusal: "allow it"},
		{name: "When a wildcard is blocked, it should report that containerd does not support wildcards",
			image: image(configv1.RegistrySources{BlockedRegistries: []string{"*.example"}}), refusal: `blockedRegistries has the entry "*.example"`},
		{name: "When a repository is allowed, it should report that containerd supports only registries",
			image: image(configv1.RegistrySources{AllowedRegistries: []string{"a.example/team"}}), refusal: "without wildcard and path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := nodeinput.ReadRegistries(tc.image, tc.mirrors, node)
			if tc.refusal != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	t.Run("When an image names no registry, it should belong to Docker Hub", func(t *testing.T) {
		_, err := nodeinput.ReadRegistries(image(configv1.RegistrySources{BlockedRegistries: []string{"docker.io"}}), nil, "library/pause:3")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("forbids docker.io")))
	})
}

func TestReadRegistryCAs(t *testing.T) {
	for _, tc := range []struct {
		name    string
		data    map[string]string
		refusal string
	}{
		{"When a key does not name a registry, it should show the format", map[string]string{"../x": "y"}, "write host, or host..port"},
		{"When a value is not a certificate, it should name the key", map[string]string{"a.example..5000": "y"}, `"a.example..5000" holds no PEM certificate`},
		{"When it is the CA of the update service, it should be ignored", map[string]string{"updateservice-registry": "y"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cas, err := nodeinput.ReadRegistryCAs(tc.data)
			if tc.refusal != "" {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
				return
			}
			NewWithT(t).Expect(cas, err).To(BeEmpty())
		})
	}
}

func TestMirrorEndpoint(t *testing.T) {
	for _, tc := range []struct{ name, source, destination, host, endpoint string }{
		{"When source and destination are registries, it should keep the path", "a.example", "b.example:5000", "a.example", "https://b.example:5000/v2"},
		{"When the paths are equal, it should keep the path", "a.example/x/y", "b.example/x/y", "a.example", "https://b.example/v2"},
		{"When the mirror has a prefix, it should add the prefix", "a.example/x", "b.example/cache/x", "a.example", "https://b.example/v2/cache"},
		{"When a complete registry is mirrored to a path, it should add the path", "a.example", "b.example/cache", "a.example", "https://b.example/v2/cache"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			host, endpoint, err := nodeinput.MirrorEndpoint(tc.source, tc.destination)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(host).To(Equal(tc.host))
			g.Expect(endpoint).To(Equal(tc.endpoint))
		})
	}
}
