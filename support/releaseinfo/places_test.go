// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	. "github.com/onsi/gomega"
)

func TestCandidates(t *testing.T) {
	const image = "quay.io/openshift/release:4.20"
	for name, tc := range map[string]struct {
		mirrors []Mirror
		want    []string
	}{
		"When there are no mirrors, it should return only the image": {nil, []string{image}},
		"When there are several mirrors, it should return them in order before the source": {
			[]Mirror{{Source: "quay.io", Mirrors: []string{"a", "b:5000/x"}}, {Source: "quay.io/openshift", Mirrors: []string{"c"}}},
			[]string{"a/openshift/release:4.20", "b:5000/x/openshift/release:4.20", "c/release:4.20", image}},
		"When the source is the repository, it should keep the tag": {
			[]Mirror{{Source: "quay.io/openshift/release", Mirrors: []string{"a/b"}}}, []string{"a/b:4.20", image}},
		"When another source only has a common prefix, it should not match": {
			[]Mirror{{Source: "quay.io/open", Mirrors: []string{"a"}}, {Source: "quay", Mirrors: []string{"b"}}}, []string{image}},
		"When the source must not be contacted, it should not return it": {
			[]Mirror{{Source: "quay.io", Mirrors: []string{"a"}, Only: true}}, []string{"a/openshift/release:4.20"}},
		"When one of two mirror entries forbids the source, it should not return it": {
			[]Mirror{{Source: "quay.io", Mirrors: []string{"a"}, Only: true}, {Source: "quay.io/openshift", Mirrors: []string{"b"}}},
			[]string{"a/openshift/release:4.20", "b/release:4.20"}},
		"When another source must not be contacted, it should return this one": {
			[]Mirror{{Source: "docker.io", Mirrors: []string{"a"}, Only: true}}, []string{image}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, candidates(image, tc.mirrors)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOverrideOfWholeNames(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io":                 "mirror",
		"quay.io:443/a":           "mirror:443/a",
		"quay.io/a@sha256:0":      "mirror/a@sha256:0",
		"quay.io.example/a":       "quay.io.example/a",
		"other/quay.io/a":         "other/quay.io/a",
		"docker.io/library/etcd":  "local/etcd",
		"docker.io/library-x/etc": "docker.io/library-x/etc",
		"":                        "",
	} {
		t.Run("When the image is "+image+", it should become "+want, func(t *testing.T) {
			NewWithT(t).Expect(Override(image, map[string]string{"quay.io": "mirror", "docker.io/library": "local"})).To(Equal(want))
		})
	}
}

func credentials(t *testing.T, keychain authn.Keychain, image string) authn.AuthConfig {
	t.Helper()
	repository, err := name.NewRepository(image)
	if err != nil {
		t.Fatal(err)
	}
	auth, err := keychain.Resolve(repository)
	if err != nil {
		t.Fatal(err)
	}
	config, err := auth.Authorization()
	if err != nil {
		t.Fatal(err)
	}
	return *config
}

func TestKeysOfPullSecrets(t *testing.T) {
	for key, images := range map[string]map[string]bool{
		"r.example":                   {"r.example/a": true, "r.example:5000/a": false, "x.r.example/a": false},
		"https://r.example":           {"r.example/a": true},
		"http://r.example/":           {"r.example/a": true},
		"https://r.example/v1/":       {"r.example/a": true},
		"https://r.example/v2/":       {"r.example/a/b": true},
		"r.example:5000":              {"r.example:5000/a": true, "r.example/a": false},
		"r.example/team/app":          {"r.example/team/app": true, "r.example/team/app/x": true, "r.example/team": false, "r.example/team/apps": false},
		"docker.io":                   {"busybox": true, "docker.io/library/busybox": true, "r.example/a": false},
		"registry-1.docker.io":        {"index.docker.io/library/busybox": true},
		"https://index.docker.io/v1/": {"docker.io/team/app": true},
		"":                            {"r.example/a": false},
	} {
		for image, found := range images {
			t.Run("When the key is "+key+", it should report whether "+image+" has credentials", func(t *testing.T) {
				keychain, err := Keychain([]byte(`{"auths":{"` + key + `":{"username":"u","password":"p"}}}`))
				g := NewWithT(t)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(credentials(t, keychain, image).Password != "").To(Equal(found))
			})
		}
	}
	t.Run("When there is no pull secret, it should be anonymous", func(t *testing.T) {
		keychain, err := Keychain(nil)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials(t, keychain, "r.example/a")).To(Equal(authn.AuthConfig{}))
	})
	t.Run("When the credentials are in the auth field, it should decode them", func(t *testing.T) {
		keychain, err := Keychain([]byte(`{"auths":{"r.example":{"auth":"dTpwOnE="}}}`))
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials(t, keychain, "r.example/a")).To(And(HaveField("Username", "u"), HaveField("Password", "p:q")))
	})
	for _, wrong := range []string{"hunter2", `{"auths":["hunter2"]}`, `{"auths":{"r":{"auth":"hunter2 is no base64"}}}`} {
		t.Run("When the pull secret is malformed, it should return an error and not print it: "+wrong[:5], func(t *testing.T) {
			_, err := Keychain([]byte(wrong))
			g := NewWithT(t)
			g.Expect(err).To(MatchError(errPullSecret))
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestOpenStackDisk(t *testing.T) {
	images := decodeBootImages([]byte(`data: {stream: '{"architectures":{"x86_64":{"artifacts":{"openstack":{"formats":{
		"qcow2.gz":{"disk":{"location":"https://images.example/disk.gz"}},"raw":{"disk":{"location":"https://images.example/disk.raw"}}}}}}}}'}`))
	release := New("", Payload{BootImages: images})
	for _, tc := range []struct{ architecture, want string }{
		{"amd64", "https://images.example/disk.gz"}, {"", "https://images.example/disk.gz"}, {"arm64", ""}, {"mips", ""},
	} {
		t.Run("When the architecture is "+tc.architecture+", it should return the disk if there is one", func(t *testing.T) {
			g := NewWithT(t)
			url, known := release.OpenStackDisk(tc.architecture)
			g.Expect(url).To(Equal(tc.want))
			g.Expect(known).To(Equal(tc.want != ""))
		})
	}
}
