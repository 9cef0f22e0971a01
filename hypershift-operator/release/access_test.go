// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
	"github.com/openshift/hypershift/support/releaseversion"
)

// nowhere is a registry that does not exist.
const nowhere = "127.0.0.1:1"

// TestWays checks that a payload is read from the overrides of the installer and the mirrors of the cluster.
func TestWays(t *testing.T) {
	registry := releasetest.Start(t)
	for _, tc := range []struct {
		name      string
		overrides map[string]string
		mirrors   []hyperv1.ImageContentSource
		want      releaseinfo.Reason
	}{
		{"When there is no override or mirror, it should read from the registry in the image reference", nil, nil, releaseinfo.ReasonUnreachable},
		{"When the installer overrides the registry, it should read from the override", map[string]string{nowhere: registry.Host}, nil, releaseinfo.ReasonNotFound},
		{"When the cluster has a mirror for the image, it should read from the mirror", nil,
			[]hyperv1.ImageContentSource{{Source: nowhere + "/payloads", Mirrors: []string{registry.Host + "/payloads"}}}, releaseinfo.ReasonNotFound},
		{"When the mirror is for other images, it should read from the registry in the image reference", nil,
			[]hyperv1.ImageContentSource{{Source: nowhere + "/others", Mirrors: []string{registry.Host + "/others"}}}, releaseinfo.ReasonUnreachable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, before := NewWithT(t), registry.Requests()
			reader, access := NewReader(tc.overrides), Access{TrustBundle: registry.CA, Mirrors: tc.mirrors}
			_, err := reader.Lookup(t.Context(), nowhere+"/payloads/release:1", access)
			g.Expect(err).To(HaveOccurred())
			g.Expect(registry.Requests() > before).To(Equal(tc.want == releaseinfo.ReasonNotFound), "%v", err)
			before = registry.Requests()
			_, err = reader.Labels(t.Context(), nowhere+"/payloads/component:1", access)
			g.Expect(err).To(HaveOccurred())
			g.Expect(registry.Requests() > before).To(Equal(tc.want == releaseinfo.ReasonNotFound), "%v", err)
		})
	}
}

// TestGuardedReader checks that a blocked registry is not called, and that the error does not contain its address.
func TestGuardedReader(t *testing.T) {
	g, registry := NewWithT(t), releasetest.Start(t)
	guard, err := addressguard.New("", "")
	g.Expect(err).NotTo(HaveOccurred())
	reader := NewReader(nil).Guarded(guard)
	_, err = reader.Lookup(t.Context(), registry.Host+"/payloads/release:1", Access{TrustBundle: registry.CA})
	g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonNotAllowed))
	g.Expect(err).To(MatchError(ContainSubstring("its address is blocked by the address policy")))
	g.Expect(err).NotTo(MatchError(ContainSubstring("dial tcp")))
	g.Expect(registry.Requests()).To(BeZero())
}

// TestReadersAreKept checks that only clusters with the same access to registries share a cache.
func TestReadersAreKept(t *testing.T) {
	g, reader := NewWithT(t), NewReader(nil)
	of := func(access Access) *releaseinfo.Registry {
		registry, err := reader.registry("clusters", access)
		g.Expect(err).NotTo(HaveOccurred())
		return registry
	}
	source := func(source string, mirrors ...string) hyperv1.ImageContentSource {
		return hyperv1.ImageContentSource{Source: source, Mirrors: mirrors}
	}
	ca := releasetest.Start(t).CA
	accesses := []Access{
		{}, {TrustBundle: ca}, {Mirrors: []hyperv1.ImageContentSource{source("ab", "c")}}, {Mirrors: []hyperv1.ImageContentSource{source("a", "bc")}},
		{Mirrors: []hyperv1.ImageContentSource{source("a", "b", "c")}}, {Mirrors: []hyperv1.ImageContentSource{source("a", "b"), source("c")}},
		{Mirrors: []hyperv1.ImageContentSource{source("a", "c", "b")}}, {TrustBundle: ca, Mirrors: []hyperv1.ImageContentSource{source("a", "c", "b")}},
	}
	seen := map[*releaseinfo.Registry]int{}
	for i, access := range accesses {
		registry := of(access)
		if other, known := seen[registry]; known {
			t.Errorf("accesses %d and %d share a reader", other, i)
		}
		seen[registry] = i
	}
	for i, access := range accesses {
		access.PullSecret = []byte("another one each time")
		g.Expect(seen).To(HaveKeyWithValue(of(access), i))
	}
	_, err := reader.Labels(t.Context(), "image", Access{TrustBundle: []byte("no PEM")})
	g.Expect(err).To(MatchError(ContainSubstring("spec.additionalTrustBundle")))
}

// TestOfPool checks which digest a pool's machines get after the tag in the spec was moved.
func TestOfPool(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.ReleaseImageSourceAnnotation: "r:1"}},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "r@sha256:1"}}
	for _, tc := range []struct {
		name, image, status, annotation string
		hcp                             *hyperv1.HostedControlPlane
		want                            string
	}{
		{"When status has the resolved digest, it should return that digest", "r:1", "r:1 r@" + digest, "", hcp, "r@" + digest},
		{"When spec names another image than status, it should ignore status", "r:2", "r:1 r@" + digest, "", hcp, "r:2"},
		{"When the control plane runs the image, it should return the control plane's digest", "r:1", "", "", hcp, "r@sha256:1"},
		{"When the control plane runs the image and status has another, it should return the control plane's digest", "r:1",
			"r:0 r@" + digest, "", hcp, "r@sha256:1"},
		{"When there is no control plane, it should return the image in spec", "r:1", "", "", nil, "r:1"},
		{"When the control plane runs another image, it should return the image in spec", "r:3", "", "", hcp, "r:3"},

		{"When release 0.1.0 stored the digest in an annotation, it should return that digest", "r:1", "", "r:1 r@" + digest, hcp, "r@" + digest},
		{"When status has the digest, it should ignore the annotation", "r:1", "r:1 r@sha256:2", "r:1 r@" + digest, hcp,
			"r@sha256:2"},
		{"When status is about another image, it should ignore the annotation", "r:3", "r:1 r@sha256:2", "r:3 r@" +
			digest, nil, "r:3"},
		{"When the annotation names another registry, it should ignore the annotation", "r:1", "", "r:1 10.9.8.7:80/r@" + digest, hcp,
			"r@sha256:1"},
		{"When the annotation names another repository, it should ignore the annotation", "r:1", "", "r:1 r/evil@" + digest, hcp,
			"r@sha256:1"},
		{"When the annotation's path contains .., it should ignore the annotation", "a.example/r:1", "",
			"a.example/r:1 a.example/r/../evil@" + digest, nil, "a.example/r:1"},
		{"When the annotation names a tag, it should ignore the annotation", "r:1", "", "r:1 r:2", hcp, "r@sha256:1"},
		{"When the annotation is malformed, it should ignore the annotation", "r:1", "", "r:1", hcp, "r@sha256:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pool := &hyperv1.NodePool{Spec: hyperv1.NodePoolSpec{Release: hyperv1.Release{Image: tc.image}}}
			if image, pinned, ok := strings.Cut(tc.status, " "); ok {
				pool.Status.ResolvedRelease = &hyperv1.NodePoolResolvedRelease{Image: image, PinnedImage: pinned}
			}
			if tc.annotation != "" {
				pool.Annotations = map[string]string{hyperv1.NodePoolResolvedReleaseAnnotation: tc.annotation}
			}
			NewWithT(t).Expect(OfPool(pool, tc.hcp)).To(Equal(tc.want))
		})
	}
}

// TestNothingTaken checks that an empty image does not match a control plane without a release.
func TestNothingTaken(t *testing.T) {
	_, taken := Taken(&hyperv1.HostedControlPlane{}, "")
	NewWithT(t).Expect(taken).To(BeFalse())
}

// TestOddVersions checks that unknown or invalid versions do not block a release.
func TestOddVersions(t *testing.T) {
	payload := func(version string, distribution releaseinfo.Distribution) *releaseinfo.ReleaseImage {
		return releaseinfo.New("image", releaseinfo.Payload{Version: version, Distribution: distribution})
	}
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"When the running version is invalid, it should accept the OpenShift release", releaseversion.Supported(payload("4.20.0", releaseinfo.OpenShift), "nightly"), ""},
		{"When only the build metadata differs, it should accept the release", releaseversion.Supported(payload("4.20.1+build.7", releaseinfo.OpenShift), "4.20.1"), ""},
		{"When a release candidate is too old, it should return an error", releaseversion.Supported(payload("4.13.0-rc.9", releaseinfo.OpenShift), ""), "older than 4.14.0"},
		{"When a cluster would go back from 5 to 4, it should suggest a release of the running minor", releaseversion.Supported(payload("4.23.9", releaseinfo.OpenShift), "5.1.0"), "choose a release of 5.1 or newer"},
		{"When a control plane would skip two minors, it should report the number of minors", releaseversion.Step(payload("1.34.0", releaseinfo.Kubernetes), "1.31.9"), "1.31.9 to 1.34.0 spans 3: choose a release of 1.32 first"},
		{"When a control plane would be downgraded, it should return no error because another check rejects it", releaseversion.Step(payload("1.31.0", releaseinfo.Kubernetes), "1.34.0"), ""},
		{"When the running version is invalid, it should accept any step", releaseversion.Step(payload("1.34.0", releaseinfo.Kubernetes), "unknown"), ""},
		{"When nodes run a candidate of the cluster's version, it should accept them", releaseversion.Newer("4.20.0-rc.1", "4.20.0"), ""},
		{"When nodes run the final release and the cluster its candidate, it should return an error", releaseversion.Newer("4.20.0", "4.20.0-rc.1"), "upgrade the cluster first"},
		{"When the nodes' version is invalid, it should accept them", releaseversion.Newer("nightly", "4.20.0"), ""},
		{"When nodes on 4 lag behind a cluster on 5, it should count minors across majors", releaseversion.Skew("4.20.9", "5.1.0"), "more than 3 minor versions behind"},
		{"When the nodes' version is invalid, it should report no version skew", releaseversion.Skew("nightly", "4.20.0"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.want == "" {
				NewWithT(t).Expect(tc.err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(tc.err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	g := NewWithT(t)
	g.Expect(releaseversion.SameMinor("4.19.1", "5.19.1")).To(BeFalse())
	g.Expect(releaseversion.SameMinor("0.0.1", "nonsense")).To(BeFalse(), "what is none is not version 0.0")
	g.Expect(releaseversion.SameMinor("nonsense", "0.0.1")).To(BeFalse())
	g.Expect(releaseversion.SameMinor("nonsense", "nonsense")).To(BeFalse())
	g.Expect(releaseversion.Oldest("v1.9.0", "v1.10.0", "v1.10.0-rc.1")).To(Equal("1.9.0"), "numbers are compared, not letters")
	g.Expect(releaseversion.Oldest("v1.10.0", "v1.10.0-rc.1")).To(Equal("1.10.0-rc.1"))
	g.Expect(releaseversion.AtLeast("4.21.0-rc.1", "4.20.5")).To(BeTrue())
	g.Expect(releaseversion.AtLeast("4.20.0", "nonsense")).To(BeFalse())
}
