// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
	"github.com/openshift/hypershift/support/releaseversion"
	"github.com/openshift/hypershift/support/skew"
)

func TestSupported(t *testing.T) {
	for _, tc := range []struct {
		name, version, running string
		distribution           releaseinfo.Distribution
		want                   string
	}{
		{"When the Kubernetes version is known, it should accept the release", "1.36.3", "", releaseinfo.Kubernetes, ""},
		{"When the Kubernetes version is too old, it should name the oldest supported version", "1.30.0", "", releaseinfo.Kubernetes, "older than 1.31.0"},
		{"When the release is the oldest supported OpenShift, it should accept the release", "4.14.0", "", releaseinfo.OpenShift, ""},
		{"When the release is a candidate of the oldest supported OpenShift, it should accept the release", "4.14.0-rc.1", "", releaseinfo.OpenShift, ""},
		{"When the OpenShift version is too old, it should name the oldest supported version", "4.13.9", "", releaseinfo.OpenShift, "older than 4.14.0"},
		{"When the minor version decreases, it should return an error", "4.18.0", "4.19.3", releaseinfo.OpenShift, "going back"},
		{"When only the patch version decreases, it should accept the release", "4.19.1", "4.19.3", releaseinfo.OpenShift, ""},
		{"When the major version changes from 4 to 5, it should accept the release", "5.0.0", "4.23.1", releaseinfo.OpenShift, ""},
		{"When the distribution changes from OpenShift to Kubernetes, it should return an error", "1.36.0", "4.20.1", releaseinfo.Kubernetes, "distribution cannot be changed"},
		{"When the distribution changes from Kubernetes to OpenShift, it should return an error", "4.40.0", "1.36.0", releaseinfo.OpenShift, "distribution cannot be changed"},
		{"When the major version changes from 5 to 4, it should return an error", "4.22.0", "5.0.0", releaseinfo.OpenShift, "going back"},
		{"When Kubernetes is newer than the operator knows, it should name the newest known version", "1.37.0", "", releaseinfo.Kubernetes, "newer than 1.36, the newest that this operator knows of Kubernetes"},
		{"When OpenShift is newer than the operator knows, it should name the annotation that skips the check", "5.2.0", "", releaseinfo.OpenShift, "skip-release-image-validation=true"},
		{"When a cluster upgrades to a version newer than the operator knows, it should return an error", "5.2.0", "5.1.3", releaseinfo.OpenShift, "newer than 5.1"},
		{"When a cluster already runs a version newer than the operator knows, it should accept its patches", "5.2.4", "5.2.1", releaseinfo.OpenShift, ""},
		{"When the version is not a semantic version, it should return an error", "latest", "", releaseinfo.OpenShift, "not a semantic version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			err := releaseversion.Supported(releaseinfo.New("image", releaseinfo.Payload{Version: tc.version, Distribution: tc.distribution}), tc.running)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

// TestLowestOperator checks the operator version that a payload requires. It reads the payload from a registry.
func TestLowestOperator(t *testing.T) {
	for lowest, want := range map[string]string{
		"":           "",
		"0.1.0":      "",
		skew.Version: "",
		"99.0.0":     "the release needs version 99.0.0 of the operator, and this is " + skew.Version,
	} {
		t.Run("When the release needs operator version \""+lowest+"\", it should be rejected if that is newer", func(t *testing.T) {
			g := NewWithT(t)
			image, err := releaseinfo.Build(releaseinfo.Payload{
				Version: "1.36.3", Distribution: releaseinfo.Kubernetes, LowestOperator: lowest,
				Components: map[string]string{"etcd": "registry.example.com/etcd:1"},
			})
			g.Expect(err).NotTo(HaveOccurred())
			payload, err := releaseinfo.Read(image, "registry.example.com/release:1.36.3")
			g.Expect(err).NotTo(HaveOccurred())
			err = releaseversion.Supported(releaseinfo.New("image", payload), "")
			if want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestSkew(t *testing.T) {
	for _, tc := range []struct {
		name, pool, cluster string
		newer, far          bool
	}{
		{"When pool and cluster have the same version, it should accept the pool", "4.19.1", "4.19.1", false, false},
		{"When the pool is three minors behind, it should accept the pool", "4.16.0", "4.19.1", false, false},
		{"When the pool is four minors behind, it should report version skew", "4.15.0", "4.19.1", false, true},
		{"When the pool is newer, it should return an error", "4.19.2", "4.19.1", true, false},
		{"When the cluster has the next major version, it should count minors across majors", "4.21.0", "5.0.0", false, false},
		{"a pool of 5.0 below a cluster of 4.23, which is the same minor, is accepted", "5.0.1", "4.23.1", false, false},
		{"a pool of 5.0 with a later patch than its cluster of 4.23 is newer", "5.0.2", "4.23.1", true, false},
		{"a pool of 5.1 is newer than a cluster of 4.23", "5.1.0", "4.23.9", true, false},
		{"a pool of 4.23 is not newer than a cluster of 5.0", "4.23.1", "5.0.1", false, false},
		{"When the cluster's version is unknown, it should accept the pool", "4.19.1", "", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(releaseversion.Newer(tc.pool, tc.cluster) != nil).To(Equal(tc.newer))
			g.Expect(releaseversion.Skew(tc.pool, tc.cluster) != nil).To(Equal(tc.far))
		})
	}
}

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	t.Run("When versions differ only in the patch, it should report the same minor", func(*testing.T) {
		g.Expect(releaseversion.SameMinor("4.19.1", "4.19.7")).To(BeTrue())
		g.Expect(releaseversion.SameMinor("4.19.1", "4.20.1")).To(BeFalse())
		g.Expect(releaseversion.SameMinor("nonsense", "4.20.1")).To(BeFalse())
	})
	t.Run("When the version is a candidate of the requested version, it should count as that version", func(*testing.T) {
		g.Expect(releaseversion.AtLeast("4.20.0-rc.3", "4.20.0")).To(BeTrue())
		g.Expect(releaseversion.AtLeast("4.19.9", "4.20.0")).To(BeFalse())
		g.Expect(releaseversion.AtLeast("nonsense", "4.20.0")).To(BeFalse())
	})
}

func TestReader(t *testing.T) {
	registry := releasetest.Start(t)
	t.Run("When a cluster has a trust bundle, it should trust that CA", func(t *testing.T) {
		g := NewWithT(t)
		r := NewReader(nil)
		_, err := r.Lookup(t.Context(), registry.Host+"/release:1", Access{TrustBundle: registry.CA})
		g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonNotFound), "the registry was reached")
	})
	t.Run("When a cluster has no trust bundle, it should not trust the CA of another cluster", func(t *testing.T) {
		g := NewWithT(t)
		r := NewReader(nil)
		_, err := r.Lookup(t.Context(), registry.Host+"/release:1", Access{TrustBundle: registry.CA})
		g.Expect(err).To(HaveOccurred())
		_, err = r.Lookup(t.Context(), registry.Host+"/release:1", Access{})
		g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnreachable))
	})
	t.Run("When the trust bundle is not PEM, it should return an error that names the field", func(t *testing.T) {
		_, err := NewReader(nil).Lookup(t.Context(), "image", Access{TrustBundle: []byte("no PEM")})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.additionalTrustBundle")))
	})
	t.Run("When mirrors differ, it should use a separate reader for each", func(t *testing.T) {
		g := NewWithT(t)
		plain := Access{}
		mirrored := Access{Mirrors: []hyperv1.ImageContentSource{{Source: "a", Mirrors: []string{"b"}}}}
		g.Expect(key(plain)).NotTo(Equal(key(mirrored)))
		g.Expect(mirrors(mirrored.Mirrors)).To(Equal([]releaseinfo.Mirror{{Source: "a", Mirrors: []string{"b"}}}))
	})
}

func TestStep(t *testing.T) {
	for _, tc := range []struct {
		name, to, from string
		distribution   releaseinfo.Distribution
		want           string
	}{
		{"When the release is the next minor, it should accept the step", "1.32.4", "1.31.9", releaseinfo.Kubernetes, ""},
		{"When the release is the same minor, it should accept the step", "1.31.9", "1.31.4", releaseinfo.Kubernetes, ""},
		{"When no version runs yet, it should accept the release", "1.36.0", "", releaseinfo.Kubernetes, ""},
		{"When the release skips a minor, it should name the next minor", "1.33.0", "1.31.4", releaseinfo.Kubernetes, "choose a release of 1.32 first"},
		{"When the release is OpenShift, it should leave the decision to the payload's operators", "4.20.0", "4.18.0", releaseinfo.OpenShift, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			err := releaseversion.Step(releaseinfo.New("image", releaseinfo.Payload{Version: tc.to, Distribution: tc.distribution}), tc.from)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestOldest(t *testing.T) {
	g := NewWithT(t)
	g.Expect(releaseversion.Oldest("v1.32.0", "1.31.4", "", "nonsense")).To(Equal("1.31.4"))
	g.Expect(releaseversion.Oldest("", "nonsense")).To(BeEmpty())
	g.Expect(releaseversion.NextMinor("1.34.7")).To(Equal("1.35.0"))
	g.Expect(releaseversion.NextMinor("nonsense")).To(BeEmpty())
}

func TestTaken(t *testing.T) {
	hcp := &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "r@sha256:1"}}
	hcp.Annotations = map[string]string{
		hyperv1.ReleaseImageSourceAnnotation: "r:1", hyperv1.ControlPlaneReleaseImageSourceAnnotation: "r:2",
	}
	own := "r@sha256:2"
	for _, tc := range []struct {
		name, image, want string
		own               *string
		none              bool
	}{
		{"When the control plane uses the release, it should return its digest", "r:1", "r@sha256:1", nil, false},
		{"When the image is already a digest, it should return the same digest", "r@sha256:1", "r@sha256:1", nil, false},
		{"When the image is the control plane's own release, it should return the digest of that release", "r:2", own, &own, false},
		{"When spec has no separate control plane release, it should return no digest", "r:2", "", nil, false},
		{"When the image is another release, it should return no digest", "r:3", "", &own, false},
		{"When there is no control plane, it should return no digest", "r:1", "", nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, asked := NewWithT(t), hcp.DeepCopy()
			asked.Spec.ControlPlaneReleaseImage = tc.own
			if tc.none {
				asked = nil
			}
			taken, ok := Taken(asked, tc.image)
			g.Expect(taken).To(Equal(tc.want))
			g.Expect(ok).To(Equal(tc.want != ""))
		})
	}
}
