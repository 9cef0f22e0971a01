// SPDX-License-Identifier: Apache-2.0

package hosted_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
)

func TestCopyName(t *testing.T) {
	for _, source := range []string{"a", "pull-secret", "a.b.c", strings.Repeat("x", 253), strings.Repeat("y", 36) + ".z",
		"-", "Ä/../x"} {
		t.Run("the copy of "+source+" is a DNS label that only copies have", func(t *testing.T) {
			g := NewWithT(t)
			name := hosted.CopyName(hosted.UseConfiguration, source)
			g.Expect(validation.IsDNS1123Label(name)).To(BeEmpty(), name)
			g.Expect(hosted.IsCopyName(name)).To(BeTrue(), name)
			g.Expect(hosted.CopyName(hosted.UseConfiguration, source)).To(Equal(name))
			g.Expect(hosted.CopyName(hosted.UseAuditWebhook, source)).NotTo(Equal(name))
			g.Expect(hosted.CopyName(hosted.UseConfiguration, source+"x")).NotTo(Equal(name))
		})
	}
	t.Run("names of other objects are not names of copies", func(t *testing.T) {
		for _, name := range []string{
			"", "user-ca-bundle", "user-data-pool-0123abcd", "user-data-user-x-0123456789abcdef0123-0123abcd", "root-ca",
			"xuser-a-0123456789abcdef0123",
		} {
			NewWithT(t).Expect(hosted.IsCopyName(name)).To(BeFalse(), name)
		}
		NewWithT(t).Expect(hosted.CopyName(hosted.UseConfiguration, "")).To(BeEmpty())
	})
}

func TestTrusted(t *testing.T) {
	owned := map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}
	for name, tc := range map[string]struct {
		meta    metav1.ObjectMeta
		trusted bool
	}{
		"an object that does not exist is trusted":           {metav1.ObjectMeta{}, true},
		"an object of the control-plane-operator is trusted": {metav1.ObjectMeta{Name: "root-ca"}, true},
		"an object of the hypershift-operator is trusted": {metav1.ObjectMeta{Name: "x", Annotations: owned,
			Labels: map[string]string{hyperv1.OperatorObjectLabel: "true"}}, true},
		"a copy is refused": {metav1.ObjectMeta{Name: "x",
			Labels: map[string]string{hyperv1.UserCopyLabel: "true"}}, false},
		"an object with the name of a copy is refused": {
			metav1.ObjectMeta{Name: hosted.CopyName(hosted.UseConfiguration, "x")}, false},
		"an object that version 0.1.0 may have copied is refused": {metav1.ObjectMeta{Name: "root-ca",
			Annotations: owned}, false},
		"an object that was copied and later taken over is refused, too": {metav1.ObjectMeta{Name: "root-ca",
			Annotations: owned, OwnerReferences: []metav1.OwnerReference{{Kind: "HostedControlPlane"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := hosted.Trusted(&corev1.Secret{ObjectMeta: tc.meta})
			NewWithT(t).Expect(err == nil).To(Equal(tc.trusted), "%v", err)
		})
	}
	t.Run("a copy loses the label of the operator's own objects", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: owned}}
		hosted.MarkOperatorObject(secret)
		hosted.MarkCopy(secret, "source")
		NewWithT(t).Expect(hosted.Trusted(secret)).NotTo(Succeed())
	})
}

func configuration() *hyperv1.ClusterConfiguration {
	return &hyperv1.ClusterConfiguration{
		APIServer: &configv1.APIServerSpec{
			ClientCA: configv1.ConfigMapNameReference{Name: "client-ca"},
			ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{
				{ServingCertificate: configv1.SecretNameReference{Name: "cert"}},
				{ServingCertificate: configv1.SecretNameReference{Name: "cert"}},
			}},
		},
		Authentication: &configv1.AuthenticationSpec{
			WebhookTokenAuthenticator: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{
				Name: "hook"}},
			OIDCProviders: []configv1.OIDCProvider{{ExternalClaimsSources: []configv1.ExternalClaimsSource{{
				TLS: configv1.ExternalSourceTLS{CertificateAuthority: configv1.ExternalSourceCertificateAuthorityConfigMapReference{Name: "claims-ca"}}}}}},
		},
		OAuth: &configv1.OAuthSpec{IdentityProviders: []configv1.IdentityProvider{
			{IdentityProviderConfig: configv1.IdentityProviderConfig{
				OpenID: &configv1.OpenIDIdentityProvider{ClientSecret: configv1.SecretNameReference{Name: "oidc"},
					CA: configv1.ConfigMapNameReference{Name: "oidc-ca"}},
			}}}},
		Image: &configv1.ImageSpec{AdditionalTrustedCA: configv1.ConfigMapNameReference{}},
		// The Secret of a component route is in the guest.
		Ingress: &configv1.IngressSpec{ComponentRoutes: []configv1.ComponentRouteSpec{
			{ServingCertKeyPairSecret: configv1.SecretNameReference{Name: "console-cert"}}}},
	}
}

func TestConfigurationReferences(t *testing.T) {
	g := NewWithT(t)
	var found []string
	for _, ref := range hosted.References(&hyperv1.HostedClusterSpec{Configuration: configuration()}) {
		kind := "Secret"
		if ref.ConfigMap {
			kind = "ConfigMap"
		}
		found = append(found, kind+" "+*ref.Name+" for "+string(ref.Use))
	}
	g.Expect(found).To(ConsistOf("ConfigMap client-ca for configuration", "Secret cert for configuration",
		"Secret cert for configuration",
		"Secret hook for token-webhook", "Secret oidc for configuration", "ConfigMap claims-ca for configuration",
		"ConfigMap oidc-ca for configuration"))

	before := configuration()
	copied := hosted.Configuration(before)
	g.Expect(before).To(Equal(configuration()), "the user's is not changed")
	g.Expect(copied.APIServer.ClientCA.Name).To(Equal(hosted.CopyName(hosted.UseConfiguration, "client-ca")))
	g.Expect(copied.Authentication.WebhookTokenAuthenticator.KubeConfig.Name).To(
		Equal(hosted.CopyName(hosted.UseTokenWebhook, "hook")))
	g.Expect(copied.Image.AdditionalTrustedCA.Name).To(BeEmpty())
	g.Expect(copied.Ingress).To(Equal(before.Ingress))
	g.Expect(hosted.Configuration(nil)).To(BeNil())
}

func TestUpgradeReferences(t *testing.T) {
	g := NewWithT(t)
	older := func() *hyperv1.HostedControlPlaneSpec {
		return &hyperv1.HostedControlPlaneSpec{Configuration: configuration(),
			AuditWebhook: &corev1.LocalObjectReference{Name: "audit"}}
	}
	spec := older()
	hosted.UpgradeReferences(spec, older())
	g.Expect(spec).To(Equal(older()), "an older operator names no copies")

	now := &hyperv1.HostedControlPlaneSpec{Configuration: hosted.Configuration(configuration())}
	hosted.UpgradeReferences(spec, now)
	g.Expect(spec.Configuration).To(Equal(now.Configuration))
	g.Expect(spec.AuditWebhook.Name).To(Equal("audit"), "there may be no copy of what is no longer named")
	again := spec.DeepCopy()
	hosted.UpgradeReferences(again, now)
	g.Expect(again).To(Equal(spec), "references to copies stay")
}
