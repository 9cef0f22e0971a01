// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubecontrollermanager"
	"github.com/openshift/hypershift/support/tlsprofile"
)

func TestValidate(t *testing.T) {
	cases := []struct {
		name string
		edit func(*hyperv1.HostedControlPlane)
		want string
	}{
		{"nothing special", func(*hyperv1.HostedControlPlane) {}, ""},
		{"AES-CBC encryption", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{}}
		}, ""},
		{"KMS encryption", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{}}
		}, "use type aescbc"},
		{"encryption by a plugin", func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.SecretEncryption = encryptedBy("vault") }, ""},
		{"encryption without a key", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}
		}, "use type aescbc"},
		{"a restore from an etcd snapshot", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{"https://backup.example.com/1"}
		}, "restoreSnapshotURL is set"},
		{"AWS", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-central-1"}}
		}, ""},
		{"AWS without its block", func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform}
		}, "platform.aws is missing"},
	}
	for _, tc := range cases {
		t.Run("When a cluster sets "+tc.name+" it should report whether that is supported", func(t *testing.T) {
			g := NewWithT(t)
			err := Validate(controlPlane(tc.edit))
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			}
		})
	}
}

func TestWithoutEffect(t *testing.T) {
	g := NewWithT(t)
	g.Expect(WithoutEffect(controlPlane())).To(BeEmpty())
	g.Expect(WithoutEffect(controlPlane(everything))).To(BeEmpty(), "all of that is honoured")
	g.Expect(WithoutEffect(controlPlane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.FIPS = true
		hcp.Spec.Channel = "stable"
		hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{Port: ptr.To[int32](7443)}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{
			OAuth: &configv1.OAuthSpec{},
			Authentication: &configv1.AuthenticationSpec{OIDCProviders: []configv1.OIDCProvider{{
				OIDCClients: []configv1.OIDCClientConfig{{ComponentName: "console"}},
			}}},
			FeatureGate: &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{FeatureSet: configv1.TechPreviewNoUpgrade}},
		}
	}))).To(Equal([]string{"fips", "networking.apiServer.port", "channel", "configuration.authentication.oidcProviders[].oidcClients", "configuration.featureGate.featureSet", "configuration.oauth"}))
}

func TestAllocatesNodeCIDRs(t *testing.T) {
	cases := []struct {
		network  hyperv1.NetworkType
		allocate *hyperv1.AllocateNodeCIDRsMode
		want     bool
	}{
		{hyperv1.OVNKubernetes, nil, true},
		{hyperv1.OVNKubernetes, ptr.To(hyperv1.AllocateNodeCIDRsDisabled), true},
		{hyperv1.Other, nil, false},
		{hyperv1.Other, ptr.To(hyperv1.AllocateNodeCIDRsDisabled), false},
		{hyperv1.Other, ptr.To(hyperv1.AllocateNodeCIDRsEnabled), true},
	}
	for _, tc := range cases {
		t.Run("When the network is "+string(tc.network)+" it should report whether the control plane allocates CIDRs", func(t *testing.T) {
			hcp := controlPlane(func(hcp *hyperv1.HostedControlPlane) {
				hcp.Spec.Networking.NetworkType, hcp.Spec.Networking.AllocateNodeCIDRs = tc.network, tc.allocate
			})
			NewWithT(t).Expect(kubecontrollermanager.AllocatesNodeCIDRs(hcp)).To(Equal(tc.want))
		})
	}
}

func TestTLSProfile(t *testing.T) {
	profile := func(p *configv1.TLSSecurityProfile) tlsprofile.Profile {
		return tlsprofile.Of(controlPlane(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{TLSSecurityProfile: p}}
		}))
	}
	t.Run("When no TLS profile is set, it should use TLS 1.2 with modern suites only", func(t *testing.T) {
		g := NewWithT(t)
		p := profile(nil)
		g.Expect(p.MinVersion).To(Equal("VersionTLS12"))
		g.Expect(p.EtcdMinVersion()).To(Equal("TLS1.2"))
		g.Expect(p.Ciphers).To(HaveLen(6))
		g.Expect(p.Ciphers).To(ContainElement("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"))
	})
	t.Run("When the TLS profile is Modern, it should use TLS 1.3 and set no suites", func(t *testing.T) {
		g := NewWithT(t)
		p := profile(&configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType})
		g.Expect(p.MinVersion).To(Equal("VersionTLS13"))
		g.Expect(p.EtcdMinVersion()).To(Equal("TLS1.3"))
		g.Expect(p.Ciphers).To(BeEmpty())
	})
	t.Run("When the TLS profile is Custom, it should skip suites that Go does not have", func(t *testing.T) {
		g := NewWithT(t)
		p := profile(&configv1.TLSSecurityProfile{Type: configv1.TLSProfileCustomType, Custom: &configv1.CustomTLSProfile{TLSProfileSpec: configv1.TLSProfileSpec{
			Ciphers: []string{"ECDHE-RSA-AES128-GCM-SHA256", "NONE-SUCH"}, MinTLSVersion: configv1.VersionTLS12,
		}}})
		g.Expect(p.Ciphers).To(Equal([]string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}))
	})
}
