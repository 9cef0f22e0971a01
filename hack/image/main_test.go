// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/containerimage"
)

// programs links this test, which is also a Go program, under the names of the programs.
func programs(t *testing.T, architectures ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, arch := range architectures {
		for _, program := range containerimage.ProductFiles() {
			link := filepath.Join(dir, arch, program)
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(self, link); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func sample(t *testing.T, architectures ...string) options {
	return options{
		programs: programs(t, architectures...), to: filepath.Join(t.TempDir(), "oci"), architectures: architectures,
		version: "v1.2.3", revision: "0123abcd", created: 1_000_000,
	}
}

func TestPush(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	target := strings.TrimPrefix(server.URL, "http://") + "/metal/hypershift:v1.2.3"
	o := sample(t, "amd64", "arm64")
	digest, err := build(o)
	g.Expect(err).NotTo(HaveOccurred())
	pushed, err := push(ctx, o.to, target)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pushed).To(HaveSuffix("/metal/hypershift@" + digest.String()))

	tag, err := name.ParseReference(target)
	g.Expect(err).NotTo(HaveOccurred())
	index, err := remote.Index(tag, remote.WithContext(ctx))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Index(index)).To(Succeed())
	g.Expect(index.Digest()).To(Equal(digest))
	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Manifests).To(HaveLen(2))
	for i, arch := range o.architectures {
		entry := manifest.Manifests[i]
		g.Expect(entry.Platform.Architecture).To(Equal(arch))
		image, err := index.Image(entry.Digest)
		g.Expect(err).NotTo(HaveOccurred())
		config, err := image.ConfigFile()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]string{config.OS, config.Architecture, config.Config.User}).To(Equal([]string{"linux", arch, "65532:65532"}))
		bill := document{}
		attached(t, tag.Context().Digest(entry.Digest.String()), spdxMediaType, &bill)
		g.Expect(bill.Packages[0].Checksums[0].Value).To(Equal(entry.Digest.Hex), "it says which image it is of")
		checkBill(t, bill)
	}
	origin := statement{}
	attached(t, tag.Context().Digest(digest.String()), inTotoMediaType, &origin)
	g.Expect(origin.Subject[0].Digest).To(Equal(map[string]string{"sha256": digest.Hex}))
	g.Expect(origin.Predicate.Definition.Dependencies[0].Digest).To(Equal(map[string]string{"gitCommit": "0123abcd"}))
}

// attached reads the only artifact of a type that a registry lists for an image.
func attached(t *testing.T, image name.Digest, mediaType types.MediaType, into any) {
	t.Helper()
	g := NewWithT(t)
	list, err := remote.Referrers(image, remote.WithContext(t.Context()))
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := list.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Manifests).To(HaveLen(1))
	artifact, err := remote.Image(image.Digest(manifest.Manifests[0].Digest.String()), remote.WithContext(t.Context()))
	g.Expect(err).NotTo(HaveOccurred())
	layers, err := artifact.Layers()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(layers[0].MediaType()).To(Equal(mediaType))
	g.Expect(json.Unmarshal(content(t, layers[0]), into)).To(Succeed())
}

func content(t *testing.T, layer v1.Layer) []byte {
	t.Helper()
	in, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	raw, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// checkBill checks that the bill lists each program and a module that this test is linked from, and that all its
// references resolve.
func checkBill(t *testing.T, bill document) {
	t.Helper()
	ids, names := map[string]bool{documentID: true}, map[string]string{}
	for _, p := range bill.Packages {
		if ids[p.ID] {
			t.Errorf("two elements are called %s", p.ID)
		}
		ids[p.ID] = true
		names[p.Name] = p.ID
	}
	for _, r := range bill.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%v refers to what is not there", r)
		}
	}
	for _, want := range append([]string{"stdlib", "github.com/spf13/cobra"}, containerimage.ProductPrograms...) {
		if names[want] == "" {
			t.Errorf("it does not name %s", want)
		}
	}
}

func TestBuildIsReproducible(t *testing.T) {
	t.Run("When the image is built twice, all files should be identical", func(t *testing.T) {
		o := sample(t, "arm64")
		again := o
		again.to = filepath.Join(t.TempDir(), "again")
		g := NewWithT(t)
		for _, o := range []options{o, again} {
			_, err := build(o)
			g.Expect(err).NotTo(HaveOccurred())
		}
		if diff := cmp.Diff(files(t, o.to), files(t, again.to)); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}

func files(t *testing.T, root string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			all[strings.TrimPrefix(path, root)] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRefusals(t *testing.T) {
	t.Run("When a program is missing, it should name the program and keep the last image", func(t *testing.T) {
		g, o := NewWithT(t), sample(t, "arm64")
		first, err := build(o)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Remove(filepath.Join(o.programs, "arm64", "hcp"))).To(Succeed())
		_, err = build(o)
		g.Expect(err).To(MatchError(And(ContainSubstring("arm64/hcp"), ContainSubstring("make image builds them"))))
		_, err = os.Stat(filepath.Join(o.to, "blobs", "sha256", first.Hex))
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When node-agent is missing for an architecture, it should name the architecture", func(t *testing.T) {
		g, o := NewWithT(t), sample(t, "arm64")
		g.Expect(os.Remove(filepath.Join(o.programs, "arm64", "node-agent", "amd64"))).To(Succeed())
		_, err := build(o)
		g.Expect(err).To(MatchError(ContainSubstring("node-agent of amd64 machines in the image for arm64 (make image builds it)")))
	})
	t.Run("When no image was built, it should name the command that builds it", func(t *testing.T) {
		_, err := push(t.Context(), t.TempDir(), "registry.example/hypershift:v1")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("make image builds it")))
	})
	t.Run("When the image reference has no tag, it should show an example with a tag", func(t *testing.T) {
		_, err := push(t.Context(), t.TempDir(), "hypershift")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("registry.example/hypershift:v1")))
	})
	t.Run("When the layout contains no image, it should return an error that names the build command", func(t *testing.T) {
		g, empties := NewWithT(t), t.TempDir()
		_, err := layout.Write(empties, empty.Index)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = push(t.Context(), empties, "registry.example/hypershift:v1")
		g.Expect(err).To(MatchError(ContainSubstring("holds no image (make image builds it)")))
	})
}
