// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

func single(t *testing.T, text, arch string) v1.Image {
	t.Helper()
	image, err := containerimage.Assemble(containerimage.Image{Name: text}, arch, static.NewLayer([]byte(text+arch), types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// index returns an index with an image for each platform, such as linux/amd64.
func index(t *testing.T, platforms ...string) v1.ImageIndex {
	t.Helper()
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		system, arch, _ := strings.Cut(platform, "/")
		descriptor := v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: arch}}
		if system == "" {
			descriptor.Platform = nil
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: single(t, "of "+system, arch), Descriptor: descriptor})
	}
	return all
}

func clientOf(t *testing.T, registry *releasetest.Registry) *Client {
	t.Helper()
	carrier, err := releaseinfo.NewTransport(registry.CA, false)
	if err != nil {
		t.Fatal(err)
	}
	return &Client{Transport: carrier, Keychain: authn.NewMultiKeychain()}
}

func TestFind(t *testing.T) {
	registry := releasetest.Start(t)
	c := clientOf(t, registry)
	registry.PushIndex(t, registry.Host+"/many:1", index(t, "linux/arm64", "linux/amd64", "windows/amd64", "unknown/unknown"))
	registry.Push(t, registry.Host+"/one:1", single(t, "one", "arm64"))
	t.Run("When an image has several platforms, it should return the digest and only the Linux images", func(t *testing.T) {
		g := NewWithT(t)
		image, err := c.Find(t.Context(), registry.Host+"/many:1", []string{"amd64", "arm64"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(image.Architectures).To(Equal([]string{"amd64", "arm64"}))
		g.Expect(image.Named.Name()).To(Equal(registry.Host + "/many:1"))
		digest, err := image.Content.Digest()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(image.Ref.Name()).To(Equal(registry.Host + "/many@" + digest.String()))
		for _, arch := range []string{"amd64", "arm64"} {
			one, err := image.For(arch)
			g.Expect(err).NotTo(HaveOccurred())
			config, err := one.ConfigFile()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Architecture).To(Equal(arch))
		}
		_, err = image.For("s390x")
		g.Expect(err).To(MatchError(ContainSubstring("is not there for s390x")))
	})
	t.Run("When an image has one architecture, it should return that architecture", func(t *testing.T) {
		g := NewWithT(t)
		image, err := c.Find(t.Context(), registry.Host+"/one:1", nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(image.Architectures).To(Equal([]string{"arm64"}))
		one, err := image.Any()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(one).To(Equal(image.Content))
	})
	for spec, says := range map[string]string{
		"/many:1 for s390x": "is not there for s390x, only for amd64, arm64: name one that is, or build for fewer architectures with --arch",
		"/one:1 for amd64":  "is not there for amd64, only for arm64",
		"/none:1 for amd64": "; check the name and the tag",
		"/A B for amd64":    "could not parse reference",
	} {
		t.Run("When "+spec+" is asked for, it should say what is wrong in one line", func(t *testing.T) {
			image, arch, _ := strings.Cut(spec, " for ")
			_, err := c.Find(t.Context(), registry.Host+image, []string{arch})
			NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(says), Not(ContainSubstring("\n")))))
		})
	}
}

func TestAny(t *testing.T) {
	for name, tt := range map[string]struct {
		platforms []string
		want      string
	}{
		"When an image of another OS comes first, it should return the Linux image": {[]string{"windows/amd64", "linux/arm64"}, "arm64"},
		"When an index entry has no platform, it should return its image":           {[]string{"/amd64"}, "amd64"},
		"When the index has no Linux image, it should return an error":              {[]string{"windows/amd64"}, ""},
		"When the index is empty, it should return an error":                        {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			image, err := (&Image{Content: index(t, tt.platforms...)}).Any()
			if tt.want == "" {
				g.Expect(err).To(MatchError("its index has no image for Linux"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			config, err := image.ConfigFile()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Architecture).To(Equal(tt.want))
		})
	}
}

// content is neither an index nor an image.
type content struct{ Content }

func TestCopy(t *testing.T) {
	from, to := releasetest.Start(t), releasetest.Start(t)
	carrier, err := releaseinfo.NewTransport([]byte(string(from.CA)+string(to.CA)), false)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c := &Client{Transport: carrier, Keychain: authn.NewMultiKeychain()}
	spec := from.PushIndex(t, from.Host+"/team/a:v1", index(t, "linux/amd64", "linux/arm64"))
	target, err := c.Repository(to.Host + "/rack/team/a")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Run("When the image was found by tag, the copy should have the digest and the tag", func(t *testing.T) {
		g := NewWithT(t)
		image, err := c.Find(t.Context(), from.Host+"/team/a:v1", nil)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := c.Copy(t.Context(), image, target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ref.Name()).To(Equal(strings.Replace(spec, from.Host, to.Host+"/rack", 1)))
		copied, err := c.Find(t.Context(), to.Host+"/rack/team/a:v1", []string{"amd64", "arm64"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(copied.Ref.DigestStr()).To(Equal(image.Ref.DigestStr()))
	})
	t.Run("When the image was found by digest, the copy should have the digest and no tag", func(t *testing.T) {
		g := NewWithT(t)
		other := from.PushIndex(t, from.Host+"/team/b:v2", index(t, "linux/arm64"))
		image, err := c.Find(t.Context(), other, nil)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := c.Copy(t.Context(), image, target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ref.DigestStr()).To(Equal(image.Ref.DigestStr()))
		_, err = c.Find(t.Context(), to.Host+"/rack/team/a:v2", nil)
		g.Expect(err).To(HaveOccurred())
	})
	t.Run("When the content is not an image, it should push nothing", func(t *testing.T) {
		_, err := c.Push(t.Context(), target.Tag("v3"), content{})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("transfer.content is not an image")))
	})
}

// TestAdvice checks that denied access, a missing image and an unreachable registry lead to different advice.
func TestAdvice(t *testing.T) {
	refused := "check the credentials"
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"there is no such image":            {&transport.Error{StatusCode: http.StatusNotFound}, "check the name and the tag"},
		"the registry requires credentials": {&transport.Error{StatusCode: http.StatusUnauthorized}, refused},
		"this user is not let in":           {fmt.Errorf("get: %w", &transport.Error{StatusCode: http.StatusForbidden}), refused},
		"the registry has no space left": {&transport.Error{StatusCode: http.StatusInsufficientStorage},
			"the registry has a problem: try again later"},
		"the registry is unreachable": {errors.New("connection refused"),
			"check that the registry can be reached from here by HTTPS, and --ca-file"},
	} {
		t.Run("When "+name+" it should say what to do", func(t *testing.T) {
			NewWithT(t).Expect(advice(tt.err, refused)).To(Equal(tt.want))
		})
	}
	t.Run("When the error of the registry has several lines, it should be joined into one line", func(t *testing.T) {
		NewWithT(t).Expect(oneLine(errors.New("x509: unknown\n\tauthority"))).To(MatchError("x509: unknown authority"))
	})
}

// TestInsecure checks that plain HTTP is used only if it is requested.
func TestInsecure(t *testing.T) {
	for insecure, scheme := range map[bool]string{true: "http", false: "https"} {
		g := NewWithT(t)
		c := &Client{Insecure: insecure}
		ref, err := c.Parse("registry.example/a:1")
		g.Expect(err).NotTo(HaveOccurred())
		repository, err := c.Repository("registry.example/a")
		g.Expect(err).NotTo(HaveOccurred())
		for _, of := range []name.Registry{ref.Context().Registry, repository.Registry} {
			g.Expect(of.Scheme()).To(Equal(scheme))
		}
	}
}
