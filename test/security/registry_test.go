// SPDX-License-Identifier: Apache-2.0

package security

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// TestRegistryOfATenant checks that the operator does not call an address that a tenant names in an annotation or as a
// mirror. The operator also does not report to the tenant what responds there.
func TestRegistryOfATenant(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for _, tt := range []struct {
		name, tenant string
		attack       func(hc *hyperv1.HostedCluster, pool *hyperv1.NodePool, internal string)
	}{
		{"in an annotation that resolves the release", "registry-annotation",
			func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool, internal string) {
				pool.Annotations = map[string]string{hyperv1.NodePoolResolvedReleaseAnnotation: pool.Spec.Release.Image + " " +
					internal + "/release@" + digest}
			}},
		{"as a mirror of the release's", "registry-mirror", func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool,
			internal string) {
			hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "registry.invalid",
				Mirrors: []string{internal + "/mirror"}}}
		}},
		{"as the release", "registry-release", func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool, internal string) {
			pool.Spec.Release.Image = internal + "/release:1"
		}},
	} {
		t.Run("When a tenant names an internal address "+tt.name+", it should not be called", func(t *testing.T) {
			o, internal := newOperator(t, tt.tenant), releasetest.Start(t)
			l := limits(t)
			l.Registries = []string{"registry.invalid"}
			o.clusters.Settings.Limits, o.pools.Limits = l, l
			reader := release.NewReader(nil).Limited(l.Image)
			o.clusters.Releases, o.pools.Releases = reader, reader
			hc, pool := fixture.HostedCluster(o.tenant), fixture.NodePool(o.tenant)
			hc.Spec.Release.Image, pool.Spec.Release.Image = "registry.invalid/release:1", "registry.invalid/release:1"
			tt.attack(hc, pool, internal.Host)
			fixture.Create(t, o.client, append(fixture.Inputs(o.tenant), hc, pool)...)
			o.pass()
			o.Expect(internal.Requests()).To(BeZero())
			o.Expect(o.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool)).To(Succeed())
			o.Expect(pool.Status.Conditions).To(ContainElement(And(
				HaveField("Type", hyperv1.NodePoolValidReleaseImageConditionType), HaveField("Status", BeEquivalentTo("False")),
				HaveField("Message", Not(ContainSubstring("dial"))), HaveField("Message", Not(ContainSubstring("lookup"))))))
		})
	}
}
