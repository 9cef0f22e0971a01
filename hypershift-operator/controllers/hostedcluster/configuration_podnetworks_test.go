// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/phase"
)

func TestValidatePodNetworks(t *testing.T) {
	const wide = "fd01::/40"
	for name, tc := range map[string]struct {
		image, pods, services string
		exists                bool
		says                  string
	}{
		"the default networks":                          {fixture.ReleaseImage, "10.132.0.0/14", "172.31.0.0/16", false, ""},
		"a network that is too wide for Kubernetes":     {fixture.ReleaseImage, wide, "fd02::/112", false, "fd01::/40 has too many ranges"},
		"a wide network of OpenShift":                   {fixture.OCPImage, wide, "fd02::/112", false, ""},
		"a network too wide for an existing cluster":    {fixture.ReleaseImage, wide, "fd02::/112", true, "fd01::/40 has too many ranges"},
		"pods and Services of two families":             {fixture.OCPImage, "fd01::/48", "172.31.0.0/16", false, "172.31.0.0/16"},
		"a network smaller than one range":              {fixture.OCPImage, "10.132.0.0/24", "172.31.0.0/16", false, "10.132.0.0/24 is smaller"},
		"a release that could not be read, and a fault": {"", wide, "fd02::/112", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), withScope()
			s.wantedControlPlane = fixture.Payloads()[tc.image]
			if tc.exists {
				s.HCP = &hyperv1.HostedControlPlane{}
			}
			s.HC.Spec.Networking = hyperv1.ClusterNetworking{NetworkType: hyperv1.OVNKubernetes,
				ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: *ipnet.MustParseCIDR(tc.pods)}},
				ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR(tc.services)}}}
			_, err := (&Reconciler{}).validatePodNetworks(t.Context(), s)
			g.Expect(errors.Is(err, phase.ErrStop)).To(Equal(tc.says != "" && !tc.exists), "a new cluster waits")
			c := s.Conditions[string(hyperv1.ValidHostedClusterConfiguration)]
			if tc.says == "" {
				g.Expect(c.Reason).To(BeEmpty())
				return
			}
			g.Expect(c.Reason).To(Equal(hyperv1.InvalidConfigurationReason))
			g.Expect(c.Message).To(ContainSubstring(tc.says))
		})
	}
}
