package release

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

func TestSupported(t *testing.T) {
	for _, tc := range []struct {
		name, version, running string
		distribution           releaseinfo.Distribution
		want                   string
	}{
		{"When it is a known Kubernetes it should accept", "1.36.3", "", releaseinfo.Kubernetes, ""},
		{"When it is an old Kubernetes it should name the oldest", "1.30.0", "", releaseinfo.Kubernetes, "older than 1.31.0"},
		{"When it is the oldest OpenShift it should accept", "4.14.0", "", releaseinfo.OpenShift, ""},
		{"When it is a candidate of the oldest it should accept", "4.14.0-rc.1", "", releaseinfo.OpenShift, ""},
		{"When it is an old OpenShift it should name the oldest", "4.13.9", "", releaseinfo.OpenShift, "older than 4.14.0"},
		{"When the minor goes back it should refuse", "4.18.0", "4.19.3", releaseinfo.OpenShift, "going back"},
		{"When only the patch goes back it should accept", "4.19.1", "4.19.3", releaseinfo.OpenShift, ""},
		{"When it goes from 4 to 5 it should accept", "5.0.0", "4.23.1", releaseinfo.OpenShift, ""},
		{"When it goes from 5 to 4 it should refuse", "4.22.0", "5.0.0", releaseinfo.OpenShift, "going back"},
		{"When it is no version it should say so", "latest", "", releaseinfo.OpenShift, "no semantic version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			err := Supported(releaseinfo.New("image", releaseinfo.Payload{Version: tc.version, Distribution: tc.distribution}), tc.running)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestSkew(t *testing.T) {
	for _, tc := range []struct {
		name, pool, cluster string
		newer, far          bool
	}{
		{"When both are the same it should accept", "4.19.1", "4.19.1", false, false},
		{"When the pool is three minors behind it should accept", "4.16.0", "4.19.1", false, false},
		{"When the pool is four minors behind it should tell", "4.15.0", "4.19.1", false, true},
		{"When the pool is newer it should refuse", "4.19.2", "4.19.1", true, false},
		{"When the cluster is of the next major it should count on", "4.21.0", "5.0.0", false, false},
		{"When the cluster's version is not known it should accept", "4.19.1", "", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Newer(tc.pool, tc.cluster) != nil).To(Equal(tc.newer))
			g.Expect(Skew(tc.pool, tc.cluster) != nil).To(Equal(tc.far))
		})
	}
}

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	t.Run("When versions differ in the patch only it should be the same minor", func(*testing.T) {
		g.Expect(SameMinor("4.19.1", "4.19.7")).To(BeTrue())
		g.Expect(SameMinor("4.19.1", "4.20.1")).To(BeFalse())
		g.Expect(SameMinor("nonsense", "4.20.1")).To(BeFalse())
	})
	t.Run("When a candidate of a version is asked for it should count as that version", func(*testing.T) {
		g.Expect(AtLeast("4.20.0-rc.3", "4.20.0")).To(BeTrue())
		g.Expect(AtLeast("4.19.9", "4.20.0")).To(BeFalse())
		g.Expect(AtLeast("nonsense", "4.20.0")).To(BeFalse())
	})
}

func TestReader(t *testing.T) {
	registry := releasetest.Start(t)
	t.Run("When a cluster brings its CA it should trust it", func(t *testing.T) {
		g := NewWithT(t)
		r := NewReader(nil)
		_, err := r.Lookup(t.Context(), registry.Host+"/release:1", Access{TrustBundle: registry.CA})
		g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonNotFound), "the registry was reached")
	})
	t.Run("When a cluster does not bring the CA it should not trust what another brought", func(t *testing.T) {
		g := NewWithT(t)
		r := NewReader(nil)
		_, err := r.Lookup(t.Context(), registry.Host+"/release:1", Access{TrustBundle: registry.CA})
		g.Expect(err).To(HaveOccurred())
		_, err = r.Lookup(t.Context(), registry.Host+"/release:1", Access{})
		g.Expect(releaseinfo.ReasonOf(err)).To(Equal(releaseinfo.ReasonUnreachable))
	})
	t.Run("When the trust bundle is no PEM it should name the field", func(t *testing.T) {
		_, err := NewReader(nil).Lookup(t.Context(), "image", Access{TrustBundle: []byte("no PEM")})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.additionalTrustBundle")))
	})
	t.Run("When mirrors differ it should keep a reader for each", func(t *testing.T) {
		g := NewWithT(t)
		plain := Access{}
		mirrored := Access{Mirrors: []hyperv1.ImageContentSource{{Source: "a", Mirrors: []string{"b"}}}}
		g.Expect(key(plain)).NotTo(Equal(key(mirrored)))
		g.Expect(mirrors(mirrored.Mirrors)).To(Equal([]releaseinfo.Mirror{{Source: "a", Mirrors: []string{"b"}}}))
	})
}
