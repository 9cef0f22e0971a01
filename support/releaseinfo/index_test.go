// SPDX-License-Identifier: Apache-2.0

package releaseinfo_test

import (
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

func TestIndexes(t *testing.T) {
	attestation, err := random.Image(16, 1)
	if err != nil {
		t.Fatal(err)
	}
	release := func(arch string) v1.Image {
		p := kubernetesPayload()
		p.Architecture = arch
		img, err := releaseinfo.Build(p)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	on := func(os, arch string, img v1.Image) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: os, Architecture: arch}}}
	}
	for name, tc := range map[string]struct {
		images []mutate.IndexAddendum
		want   string
		fails  releaseinfo.Reason
	}{
		"When the index has one image, it should return the architecture of that image": {
			images: []mutate.IndexAddendum{on("linux", "arm64", release("arm64"))}, want: "arm64"},
		"When the index has one image and its attestation, it should return the architecture of that image": {
			images: []mutate.IndexAddendum{on("linux", "arm64", release("arm64")), on("unknown", "unknown", attestation)}, want: "arm64"},
		"When the first image is not a release, it should be skipped": {
			images: []mutate.IndexAddendum{on("unknown", "unknown", attestation), on("linux", "amd64", release("amd64")), on("linux", "arm64", release("arm64"))},
			want:   releaseinfo.ArchitectureMulti},
		"When images name no platform, it should count them": {
			images: []mutate.IndexAddendum{{Add: release("amd64")}, {Add: release("arm64")}}, want: releaseinfo.ArchitectureMulti},
		"When the index has no Linux image, it should not be a release": {
			images: []mutate.IndexAddendum{on("windows", "amd64", release("amd64"))}, fails: releaseinfo.ReasonNotARelease},
		"When the index is empty, it should not be a release": {fails: releaseinfo.ReasonNotARelease},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			registry := releasetest.Start(t)
			spec := registry.PushIndex(t, registry.Host+"/release:1", mutate.AppendManifests(empty.Index, tc.images...))
			found, err := registry.Provider(t).Lookup(t.Context(), spec, nil)
			g.Expect(releaseinfo.ReasonOf(err)).To(Equal(tc.fails), "%v", err)
			if tc.fails == "" {
				g.Expect(found.Architecture()).To(Equal(tc.want))
				g.Expect(spec).To(HaveSuffix("@"+found.Digest()), "the digest is that of the index, which every architecture can pull")
			}
		})
	}
}
