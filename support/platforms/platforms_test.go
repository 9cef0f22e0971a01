// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"testing"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/crds"
)

func TestOf(t *testing.T) {
	t.Run("When the platform is MAAS, it should hide it from the control plane and give machines time to install", func(t *testing.T) {
		g := NewWithT(t)
		traits, known := Of(hyperv1.MAASPlatform)
		g.Expect(known).To(BeTrue())
		g.Expect(traits.ControlPlaneType).To(Equal(hyperv1.NonePlatform))
		g.Expect(traits.InfrastructureType).To(Equal(configv1.NonePlatformType))
		g.Expect(traits.KeepsOutdatedUserData).To(BeTrue())
		g.Expect(traits.HealthCheck.NodeStartup.Minutes()).To(BeNumerically(">=", 60))
	})
	t.Run("When the platform is unknown, it should report that", func(t *testing.T) {
		g := NewWithT(t)
		_, known := Of("Mainframe")
		g.Expect(known).To(BeFalse())
	})
	t.Run("When a caller changes the result, it should not change the table", func(t *testing.T) {
		g := NewWithT(t)
		traits, _ := Of(hyperv1.MAASPlatform)
		traits.Architectures[0] = "vax"
		again, _ := Of(hyperv1.MAASPlatform)
		g.Expect(again.Supports("amd64")).To(BeTrue())
	})
}

func TestTableIsComplete(t *testing.T) {
	for _, platform := range Known() {
		t.Run("When a platform has a row, it should be complete: "+string(platform), func(t *testing.T) {
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
		{"When the architecture is amd64, it should be accepted", "amd64", true},
		{"When the architecture is arm64, it should be accepted", "arm64", true},
		{"When the architecture is not set, it should default to amd64", "", true},
		{"When the architecture is s390x, it should be rejected", "s390x", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(maas.Supports(tc.architecture)).To(Equal(tc.want))
		})
	}
}

// TestNames checks that the flags, images and environment variables of a platform derive from one name. Other
// programs find them by that name.
func TestNames(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, platform := range Known() {
		traits, _ := Of(platform)
		g.Expect(traits.Name()).To(MatchRegexp("^[a-z]+$"))
		g.Expect(traits.ProviderTag()).To(HaveSuffix("-" + traits.Name()))
		g.Expect(traits.ProviderImageEnv()).To(MatchRegexp("^[A-Z_]+$"))
		seen[traits.ProviderTag()], seen[traits.ProviderImageEnv()] = true, true
	}
	g.Expect(seen).To(HaveLen(2 * len(Known())))
	for _, folder := range CRDFolders() {
		g.Expect(crds.Folders).To(ContainElement(folder), "what is installed is there")
	}
	g.Expect(CRDFolders()).To(ContainElements(crds.Infrastructure, crds.AWS))
	g.Expect(CRDFolders()).NotTo(ContainElement(""), "a platform without provider has no kinds")
}

// TestProviders checks that either the provider or the operator marks an infrastructure cluster as ready, and that
// metal machines have long time-outs.
func TestProviders(t *testing.T) {
	for _, platform := range Known() {
		traits, _ := Of(platform)
		t.Run("When the traits of a platform depend on each other, they should be consistent: "+traits.Name(), func(t *testing.T) {
			g := NewWithT(t)
			if traits.ExternalInfra || traits.KeepsOutdatedUserData || traits.ScalesFromZero {
				g.Expect(traits.CRDs).NotTo(BeEmpty(), "without a provider there are no machines of ours")
			}
			if traits.DefaultUpgradeType == hyperv1.UpgradeTypeReplace {
				g.Expect(traits.KeepsOutdatedUserData).To(BeTrue(), "machines that are replaced may still be installing")
			}
			g.Expect(traits.HealthCheck.NodeStartup).To(BeNumerically(">", traits.HealthCheck.NodeUnready))
		})
	}
}
