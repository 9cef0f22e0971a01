// SPDX-License-Identifier: Apache-2.0

package distributions_test

import (
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestTable(t *testing.T) {
	for _, distribution := range distributions.Known() {
		t.Run("When code asks for "+string(distribution)+", it should return a complete row", func(t *testing.T) {
			g := NewWithT(t)
			traits := distributions.Of(distribution)
			g.Expect(traits.Oldest.Major).NotTo(BeZero())
			g.Expect(traits.Minors[len(traits.Minors)-1]+".0").To(Equal(traits.Oldest.String()), "newest first, down to the oldest")
			for _, minor := range traits.Minors {
				g.Expect(traits.Versions(semver.MustParse(minor+".0"))).To(BeTrue(), minor)
			}
			g.Expect(traits.NodeVersion(hyperv1.NodeVersion{OCPVersion: "4.20.1", KubeletVersion: "v1.36.3"})).To(ContainSubstring("."))
			g.Expect(traits.ReleaseByDigest).NotTo(Equal(traits.OwnOperators), "a payload's own operators compare the image that the user wrote")
		})
	}
	t.Run("When nodes of a distribution are compared, it should use the version of that distribution", func(t *testing.T) {
		g := NewWithT(t)
		node := hyperv1.NodeVersion{OCPVersion: "4.20.1", KubeletVersion: "v1.33.3"}
		g.Expect(distributions.Of(releaseinfo.OpenShift).NodeVersion(node)).To(Equal("4.20.1"))
		g.Expect(distributions.Of(releaseinfo.Kubernetes).NodeVersion(node)).To(Equal("v1.33.3"))
	})
}
