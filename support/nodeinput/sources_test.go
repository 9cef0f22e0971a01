// SPDX-License-Identifier: Apache-2.0

package nodeinput_test

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestSources checks that node-agent and containerd use the same sources. A machine pulls its first images before it
// has a container runtime.
func TestSources(t *testing.T) {
	mirrored := func(source string, mirrors ...string) releaseinfo.Mirror {
		return releaseinfo.Mirror{Source: source, Mirrors: mirrors}
	}
	only := mirrored("quay.io", "m.example")
	only.Only = true
	for name, tc := range map[string]struct {
		sources configv1.RegistrySources
		mirrors []releaseinfo.Mirror
		image   string
		want    []nodeinput.Source
	}{
		"nothing is configured": {image: "quay.io/okd/node:1", want: []nodeinput.Source{{Image: "quay.io/okd/node:1"}}},
		"its registry is insecure": {sources: configv1.RegistrySources{InsecureRegistries: []string{"lab:5000"}}, image: "lab:5000/node@sha256:1",
			want: []nodeinput.Source{{Image: "lab:5000/node@sha256:1", Insecure: true}}},
		"there are mirrors": {mirrors: []releaseinfo.Mirror{mirrored("quay.io", "m.example/cache", "n.example:5000")}, image: "quay.io/okd/node:1",
			want: []nodeinput.Source{{Image: "m.example/cache/okd/node:1"}, {Image: "n.example:5000/okd/node:1"}, {Image: "quay.io/okd/node:1"}}},
		"a mirror is listed twice": {mirrors: []releaseinfo.Mirror{mirrored("quay.io", "m.example"), mirrored("quay.io/okd", "m.example/okd")}, image: "quay.io/okd/node:1",
			want: []nodeinput.Source{{Image: "m.example/okd/node:1"}, {Image: "quay.io/okd/node:1"}}},
		"a mirror is insecure": {sources: configv1.RegistrySources{InsecureRegistries: []string{"m.example"}}, mirrors: []releaseinfo.Mirror{mirrored("quay.io", "m.example")},
			image: "quay.io/node:1", want: []nodeinput.Source{{Image: "m.example/node:1", Insecure: true}, {Image: "quay.io/node:1"}}},
		"only mirrors may be used": {mirrors: []releaseinfo.Mirror{only}, image: "quay.io/node:1", want: []nodeinput.Source{{Image: "m.example/node:1"}}},
		"its registry is blocked and mirrored": {sources: configv1.RegistrySources{BlockedRegistries: []string{"quay.io"}}, mirrors: []releaseinfo.Mirror{mirrored("quay.io", "m.example")},
			image: "quay.io/node:1", want: []nodeinput.Source{{Image: "m.example/node:1"}}},
		"its registry is among those allowed": {sources: configv1.RegistrySources{AllowedRegistries: []string{"quay.io"}}, image: "quay.io/node:1",
			want: []nodeinput.Source{{Image: "quay.io/node:1"}}},
		"the image is on Docker Hub":                {image: "busybox", want: []nodeinput.Source{{Image: "docker.io/library/busybox"}}},
		"the image belongs to a user of Docker Hub": {image: "user/app:1", want: []nodeinput.Source{{Image: "docker.io/user/app:1"}}},
		"the image names Docker Hub":                {image: "docker.io/busybox", want: []nodeinput.Source{{Image: "docker.io/library/busybox"}}},
		"its registry is this host":                 {image: "localhost/node:1", want: []nodeinput.Source{{Image: "localhost/node:1"}}},
	} {
		t.Run("When "+name+", it should use the same sources as the container runtime", func(t *testing.T) {
			registries, err := nodeinput.ReadRegistries(&configv1.ImageSpec{RegistrySources: tc.sources}, tc.mirrors, tc.image)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, registries.Sources(tc.image)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("When only other registries are allowed, it should return no sources", func(t *testing.T) {
		registries, err := nodeinput.ReadRegistries(&configv1.ImageSpec{RegistrySources: configv1.RegistrySources{AllowedRegistries: []string{"a.example"}}}, nil)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(registries.Sources("quay.io/node:1")).To(BeEmpty())
		g.Expect(registries.Sources("bad_host.example/node:1")).To(BeEmpty())
	})
	t.Run("When a node image is not a valid pull spec, it should return an error that names the payload", func(t *testing.T) {
		_, err := nodeinput.ReadRegistries(nil, nil, "-x.example/node:1")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`the release payload names image "-x.example/node:1"`)))
	})
}

// TestMirrorsThatAreNoNames covers invalid names: host and path become a folder and a URL on each machine.
func TestMirrorsThatAreNoNames(t *testing.T) {
	for _, tc := range []struct{ source, destination, says string }{
		{"a.example/..", "b.example/..", "is not a path of images"},
		{"a.example/x", "b.example/../x", "is not a path of images"},
		{"a.example/./x", "b.example/./x", "is not a path of images"},
		{"a.example", "b.example/x?y", "is not a path of images"},
		{"a.example/x\"", "b.example/x\"", "is not a path of images"},
		{"..", "b.example", "is not a registry"},
		{"a.example", "https://b.example", "is not a registry"},
		{"a.example", "b.example:port", "is not a registry"},
		{"a.example", "", "is not a registry"},
		{"*.example", "b.example", "is not a registry"},
		{"a.example/x", "b.example/y", "must end in \"x\"; mirror the images under the same path, e.g. b.example/x"},
		{"a.example/x", "b.example/yx", "must end in"},
		{"a.example/x", "b.example", "must end in"},
	} {
		t.Run("When "+tc.source+" is mirrored to "+tc.destination+", it should return an error", func(t *testing.T) {
			_, _, err := nodeinput.MirrorEndpoint(tc.source, tc.destination)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
			_, err = nodeinput.ReadRegistries(nil, []releaseinfo.Mirror{{Source: tc.source, Mirrors: []string{tc.destination}}})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
	for _, policy := range []string{"{source: a.example/x, mirrors: [b.example/x], mirrorSourcePolicy: NeverContactSource}", "{source: a.example, mirrorSourcePolicy: NeverContactSource}"} {
		_, err := nodeinput.Read("kind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: ["+policy+"]}\n", releaseinfo.Kubernetes)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("without a path, and at least one mirror")))
	}
	_, err := nodeinput.Read("kind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: {source: a.example}}\n", releaseinfo.Kubernetes)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("its list of mirrors cannot be read")))
}

func TestCAsOfRegistries(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	g := NewWithT(t)
	cas, err := nodeinput.ReadRegistryCAs(map[string]string{"a.example": ca, "b.example..5000": ca})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cas).To(Equal(map[string][]byte{"a.example": []byte(ca), "b.example:5000": []byte(ca)}))
	for _, key := range []string{"a.example..b..5000", "..", "a.example..", "a.example/x"} {
		_, err := nodeinput.ReadRegistryCAs(map[string]string{key: ca})
		g.Expect(err).To(MatchError(ContainSubstring("names no registry")), key)
	}
}

// TestHashes pins the hashes. The ignition-servers of other releases compute them too, and a machine is replaced if
// they differ.
func TestHashes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(nodeinput.Hash("")).To(Equal("811c9dc5"), "the offset of FNV-1a")
	g.Expect(nodeinput.Hash("a")).To(Equal("e40c292c"), "of the published test vectors")
	g.Expect(nodeinput.Hash("foobar")).To(Equal("bf9cf968"), "of the published test vectors")
	g.Expect(nodeinput.HashValue([]byte("a"))).To(Equal(nodeinput.Hash("[97]")))
	g.Expect(nodeinput.HashValue("a")).To(Equal(nodeinput.Hash("a")))
	plain, err := nodeinput.ConfigurationHash(&hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plain).To(HaveLen(8))
	chosen, err := nodeinput.ConfigurationHash(&hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{ImageStreamImportMode: configv1.ImportModeLegacy}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chosen).NotTo(Equal(plain))
}

func TestProxies(t *testing.T) {
	g := NewWithT(t)
	g.Expect(nodeinput.Proxy{}.IsZero()).To(BeTrue())
	g.Expect(nodeinput.Proxy{NoProxy: "a"}.IsZero()).To(BeFalse())
	read := nodeinput.ReadProxy(&configv1.ProxySpec{HTTPProxy: "http://h", HTTPSProxy: "http://s"}, hyperv1.ClusterNetworking{})
	g.Expect(read.HTTP).To(Equal("http://h"))
	g.Expect(read.HTTPS).To(Equal("http://s"))
	g.Expect(read.Check()).To(Succeed())
	for field, proxy := range map[string]nodeinput.Proxy{
		"httpProxy": {HTTP: "http://"}, "httpsProxy": {HTTPS: "http://a\nb"}, "noProxy": {NoProxy: "a\x00"},
	} {
		g.Expect(proxy.Check()).To(MatchError(ContainSubstring("spec.configuration.proxy." + field)))
	}
	g.Expect(nodeinput.Proxy{HTTP: "a", HTTPS: "b", NoProxy: "\r"}.Check().Error()).To(And(ContainSubstring("httpProxy"), ContainSubstring("httpsProxy"), ContainSubstring("noProxy")),
		"all that is wrong is said at once")
}

func TestKinds(t *testing.T) {
	g := NewWithT(t)
	kinds, err := nodeinput.Kinds("kind: B\n---\n# nothing\n---\nkind: A\n---\n{\"a\": 1}\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kinds).To(Equal([]string{"B", "A", ""}))
	_, err = nodeinput.Kinds("kind: [")
	g.Expect(err).To(MatchError(ContainSubstring("it is not YAML")))
}
