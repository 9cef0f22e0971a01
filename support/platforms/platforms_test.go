// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"testing"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestOf(t *testing.T) {
	t.Run("When the platform is MAAS it should hide it from the control plane and give machines time to install", func(t *testing.T) {
		g := NewWithT(t)
		traits, known := Of(hyperv1.MAASPlatform)
		g.Expect(known).To(BeTrue())
		g.Expect(traits.ControlPlaneType).To(Equal(hyperv1.NonePlatform))
		g.Expect(traits.InfrastructureType).To(Equal(configv1.NonePlatformType))
		g.Expect(traits.KeepsOutdatedUserData).To(BeTrue())
		g.Expect(traits.HealthCheck.NodeStartup.Minutes()).To(BeNumerically(">=", 60))
	})
	t.Run("When the platform is unknown it should say so", func(t *testing.T) {
		g := NewWithT(t)
		_, known := Of("Mainframe")
		g.Expect(known).To(BeFalse())
	})
	t.Run("When a caller changes what it got it should not change the table", func(t *testing.T) {
		g := NewWithT(t)
		traits, _ := Of(hyperv1.MAASPlatform)
		traits.Architectures[0] = "vax"
		again, _ := Of(hyperv1.MAASPlatform)
		g.Expect(again.Supports("amd64")).To(BeTrue())
	})
}

func TestTableIsComplete(t *testing.T) {
	for _, platform := range Known() {
		t.Run("When a platform has a row it should be whole: "+string(platform), func(t *testing.T) {
			g := NewWithT(t)
			traits, known := Of(platform)
			g.Expect(known).To(BeTrue())
			g.Expect(traits.ControlPlaneType).NotTo(BeEmpty())
			g.Expect(traits.InfrastructureType).NotTo(BeEmpty())
			g.Expect(traits.Architectures).NotTo(BeEmpty())
			g.Expect(traits.DefaultUpgradeType).NotTo(BeEmpty())
			g.Expect(traits.HealthCheck.NodeStartup).To(BeNumerically(">", 0))
			g.Expect(traits.HealthCheck.NodeUnready).To(BeNumerically(">", 0))
		})
	}
}

func TestSupports(t *testing.T) {
	maas, _ := Of(hyperv1.MAASPlatform)
	for _, tc := range []struct {
		name, architecture string
		want               bool
	}{
		{"When the architecture is amd64 it should be accepted", "amd64", true},
		{"When the architecture is arm64 it should be accepted", "arm64", true},
		{"When the architecture is not given it should mean amd64", "", true},
		{"When the architecture is s390x it should be refused", "s390x", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(maas.Supports(tc.architecture)).To(Equal(tc.want))
		})
	}
}
