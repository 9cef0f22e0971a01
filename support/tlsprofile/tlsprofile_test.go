// SPDX-License-Identifier: Apache-2.0

package tlsprofile_test

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/tlsprofile"
)

func chooses(profile *configv1.TLSSecurityProfile) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{TLSSecurityProfile: profile}}
	return hcp
}

func custom(least configv1.TLSProtocolVersion, ciphers ...string) *configv1.TLSSecurityProfile {
	return &configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType, Custom: &configv1.CustomTLSProfile{
		TLSProfileSpec: configv1.TLSProfileSpec{MinTLSVersion: least, Ciphers: ciphers}}}
}

func TestOf(t *testing.T) {
	silent := tlsprofile.Of(&hyperv1.HostedControlPlane{})
	for name, tc := range map[string]struct {
		profile *configv1.TLSSecurityProfile
		want    string
		etcd    string
		ciphers bool
	}{
		"nothing":                         {nil, "VersionTLS12", "TLS1.2", true},
		"intermediate":                    {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileIntermediateType}, "VersionTLS12", "TLS1.2", true},
		"modern":                          {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}, "VersionTLS13", "TLS1.3", false},
		"old":                             {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileOldType}, "VersionTLS10", "TLS1.2", true},
		"custom without a profile":        {&configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType}, "VersionTLS12", "TLS1.2", true},
		"an unknown profile":              {&configv1.TLSSecurityProfile{Type: "Future"}, "VersionTLS12", "TLS1.2", true},
		"a custom profile without a type": {&configv1.TLSSecurityProfile{Custom: custom(configv1.VersionTLS13).Custom}, "VersionTLS12", "TLS1.2", true},
		"its own with TLS 1.3":            {custom(configv1.VersionTLS13, "ECDHE-RSA-AES128-GCM-SHA256"), "VersionTLS13", "TLS1.3", false},
	} {
		t.Run("When a cluster chooses "+name+", servers should accept that and no less", func(t *testing.T) {
			g := NewWithT(t)
			got := tlsprofile.Of(chooses(tc.profile))
			g.Expect(got.MinVersion).To(Equal(tc.want))
			g.Expect(got.EtcdMinVersion()).To(Equal(tc.etcd))
			g.Expect(len(got.Ciphers) > 0).To(Equal(tc.ciphers))
			if tc.want == silent.MinVersion {
				g.Expect(got).To(Equal(silent))
			}
		})
	}
	t.Run("When the API server configuration has no TLS profile, it should return the defaults", func(t *testing.T) {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{}
		NewWithT(t).Expect(tlsprofile.Of(hcp)).To(Equal(silent))
	})
}

func TestCiphers(t *testing.T) {
	t.Run("When a cluster lists its own ciphers, servers should get the supported ones in sorted order", func(t *testing.T) {
		got := tlsprofile.Of(chooses(custom(configv1.VersionTLS12, "ECDHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256")))
		NewWithT(t).Expect(got.Ciphers).To(Equal([]string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}))
	})
	t.Run("When a cluster uses a predefined profile, the API server should know each of its ciphers", func(t *testing.T) {
		known := map[string]bool{}
		for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
			known[suite.Name] = true
		}
		for name := range configv1.TLSProfiles {
			g := NewWithT(t)
			got := tlsprofile.Of(chooses(&configv1.TLSSecurityProfile{Type: name})).Ciphers
			g.Expect(slices.IsSorted(got)).To(BeTrue(), "the same profile makes the same pods")
			for _, cipher := range got {
				g.Expect(known).To(HaveKey(cipher))
			}
		}
	})
	t.Run("When a cluster uses the intermediate profile, no server should offer insecure ciphers", func(t *testing.T) {
		got := tlsprofile.Of(&hyperv1.HostedControlPlane{})
		for _, suite := range tls.InsecureCipherSuites() {
			NewWithT(t).Expect(got.Ciphers).NotTo(ContainElement(suite.Name))
		}
	})
}

// ianaName returns a suite's name in Go's spelling: key agreement, cipher, mode and hash.
func ianaName(openSSL string) string {
	agreement, rest := "TLS_RSA_WITH_", openSSL
	for _, by := range []string{"ECDHE-ECDSA-", "ECDHE-RSA-", "DHE-RSA-"} {
		if after, is := strings.CutPrefix(openSSL, by); is {
			agreement, rest = "TLS_"+strings.ReplaceAll(by, "-", "_")+"WITH_", after
		}
	}
	rest = strings.ReplaceAll(strings.ReplaceAll(rest, "AES128", "AES-128"), "AES256", "AES-256")
	switch {
	case strings.HasPrefix(rest, "CHACHA20"):
		rest += "-SHA256"
	case !strings.Contains(rest, "GCM"):
		rest = strings.Replace(rest, "-SHA", "-CBC-SHA", 1)
	}
	return agreement + strings.ReplaceAll(rest, "-", "_")
}

// TestNamesAreThoseOfTheSuites checks the mapping of names. A wrong suite may be weaker than the user's choice, and a
// missing suite rejects clients that the user's choice admits.
func TestNamesAreThoseOfTheSuites(t *testing.T) {
	served := map[string]bool{}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		served[suite.Name] = true
	}
	for _, profile := range configv1.TLSProfiles {
		for _, name := range profile.Ciphers {
			t.Run("When a cluster names "+name+", servers should get only that cipher, if they support it", func(t *testing.T) {
				got := tlsprofile.Of(chooses(custom(configv1.VersionTLS12, name))).Ciphers
				g := NewWithT(t)
				if !served[ianaName(name)] || strings.HasPrefix(name, "TLS_") {
					g.Expect(got).To(BeEmpty())
					return
				}
				g.Expect(got).To(Equal([]string{ianaName(name)}))
			})
		}
	}
}
