// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

func TestDNSAddresses(t *testing.T) {
	hcp := fixture.GuestControlPlane()
	t.Run("When there are two service networks DNS should be the tenth address of each", func(t *testing.T) {
		g := NewWithT(t)
		hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{
			{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}, {CIDR: *ipnet.MustParseCIDR("fd00:10::/112")},
		}
		g.Expect(dnsAddresses(hcp)).To(Equal([]string{"172.31.0.10", "fd00:10::a"}))
	})
	t.Run("When there is none it should be an error", func(t *testing.T) {
		hcp.Spec.Networking.ServiceNetwork = nil
		_, err := dnsAddresses(hcp)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("has no service network")))
	})
}

func TestInfrastructureReplicas(t *testing.T) {
	g := NewWithT(t)
	hcp := fixture.GuestControlPlane()
	g.Expect(infrastructureReplicas(hcp)).To(Equal(int32(1)))
	hcp.Spec.InfrastructureAvailabilityPolicy = hyperv1.HighlyAvailable
	g.Expect(infrastructureReplicas(hcp)).To(Equal(int32(2)))
}
