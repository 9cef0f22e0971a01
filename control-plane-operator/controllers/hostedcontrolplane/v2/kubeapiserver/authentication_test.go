// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

// hostedClient returns a client of a hosted namespace with the given objects.
func hostedClient(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).Build()
}

// refusals joins the settings that the API server of a cluster does not get; nil if there are none.
func refusals(t *testing.T, hcp *hyperv1.HostedControlPlane, objects ...client.Object) error {
	t.Helper()
	all, err := Refusals(t.Context(), hostedClient(objects...), hcp)
	if err != nil {
		t.Fatal(err)
	}
	return errors.Join(all...)
}

func oidcCluster(provider configv1.OIDCProvider) *hyperv1.HostedControlPlane {
	return &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Configuration: &hyperv1.ClusterConfiguration{
		Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC, OIDCProviders: []configv1.OIDCProvider{provider}},
	}}}
}

// byClaims returns a provider with all its fields set. Where there is a choice, it uses claim names.
func byClaims() configv1.OIDCProvider {
	return configv1.OIDCProvider{
		Name: "sso",
		Issuer: configv1.TokenIssuer{
			URL: "https://sso.example.com", DiscoveryURL: "https://sso.internal.example.com/openid", Audiences: []configv1.TokenAudience{"demo", "other"},
		},
		ClaimMappings: configv1.TokenClaimMappings{
			Username: configv1.UsernameClaimMapping{Claim: "sub", PrefixPolicy: configv1.Prefix, Prefix: &configv1.UsernamePrefix{PrefixString: "sso:"}},
			Groups:   configv1.PrefixedClaimMapping{TokenClaimMapping: configv1.TokenClaimMapping{Claim: "groups"}, Prefix: "sso:"},
			UID:      &configv1.TokenClaimOrExpressionMapping{Claim: "sub"},
			Extra:    []configv1.ExtraMapping{{Key: "example.com/team", ValueExpression: "claims.team"}},
		},
		ClaimValidationRules: []configv1.TokenClaimValidationRule{
			{Type: configv1.TokenValidationRuleTypeRequiredClaim, RequiredClaim: &configv1.TokenRequiredClaim{Claim: "hd", RequiredValue: "example.com"}},
		},
		UserValidationRules: []configv1.TokenUserValidationRule{{Expression: "!user.username.startsWith('system:')", Message: "reserved"}},
	}
}

// byExpressions returns a provider that uses CEL wherever it can.
func byExpressions() configv1.OIDCProvider {
	provider := byClaims()
	provider.ClaimMappings.Username = configv1.UsernameClaimMapping{Expression: "'sso:' + claims.sub"}
	provider.ClaimMappings.Groups = configv1.PrefixedClaimMapping{TokenClaimMapping: configv1.TokenClaimMapping{Expression: "claims.groups"}}
	provider.ClaimMappings.UID = &configv1.TokenClaimOrExpressionMapping{Expression: "claims.sub"}
	provider.ClaimValidationRules = []configv1.TokenClaimValidationRule{
		{Type: configv1.TokenValidationRuleTypeCEL, CEL: configv1.TokenClaimValidationCELRule{Expression: "claims.hd == 'example.com'", Message: "not of the house"}},
	}
	return provider
}

func TestProvidersAreHonouredWholeOrNot(t *testing.T) {
	cases := []struct {
		name string
		edit func(*configv1.OIDCProvider)
		want string
	}{
		{"only CEL expressions", func(*configv1.OIDCProvider) {}, ""},
		{"only claims", func(p *configv1.OIDCProvider) { *p = byClaims() }, ""},
		{"external claim sources", func(p *configv1.OIDCProvider) {
			p.ExternalClaimsSources = []configv1.ExternalClaimsSource{{}}
		}, "configuration.authentication.oidcProviders[0].externalClaimsSources: Forbidden: kube-apiserver knows only"},
		{"a rule that is not valid CEL", func(p *configv1.OIDCProvider) {
			p.ClaimValidationRules[0].CEL.Expression = "claims.hd =="
		}, "configuration.authentication.oidcProviders[0].claimValidationRules[0].cel.expression: Invalid value"},
		{"a rule that does not return a bool", func(p *configv1.OIDCProvider) {
			p.UserValidationRules[0].Expression = "user.username"
		}, "configuration.authentication.oidcProviders[0].userValidationRules[0].expression: Invalid value"},
		{"a rule of an unknown type", func(p *configv1.OIDCProvider) {
			p.ClaimValidationRules[0].Type = "Rego"
		}, "oidcProviders[0].claimValidationRules[0].type: Unsupported value"},
		{"a CEL rule without an expression", func(p *configv1.OIDCProvider) {
			p.ClaimValidationRules[0].CEL = configv1.TokenClaimValidationCELRule{}
		}, "oidcProviders[0].claimValidationRules[0].cel.expression: Required value"},
		{"a rule with fields of two types", func(p *configv1.OIDCProvider) {
			p.ClaimValidationRules[0].RequiredClaim = &configv1.TokenRequiredClaim{Claim: "hd", RequiredValue: "x"}
		}, "oidcProviders[0].claimValidationRules[0].requiredClaim: Forbidden"},
		{"a required claim without a name", func(p *configv1.OIDCProvider) {
			p.ClaimValidationRules[0] = configv1.TokenClaimValidationRule{Type: configv1.TokenValidationRuleTypeRequiredClaim}
		}, "oidcProviders[0].claimValidationRules[0].requiredClaim.claim: Required value"},
		{"a claim that two rules require", func(p *configv1.OIDCProvider) {
			*p = byClaims()
			p.ClaimValidationRules = append(p.ClaimValidationRules, p.ClaimValidationRules[0])
		}, "oidcProviders[0].claimValidationRules[1].requiredClaim.claim: Duplicate value"},
		{"the prefix policy Prefix without a prefix", func(p *configv1.OIDCProvider) {
			*p = byClaims()
			p.ClaimMappings.Username.Prefix = nil
		}, "oidcProviders[0].claimMappings.username.prefix.prefixString: Required value"},
		{"a username with both a claim and an expression", func(p *configv1.OIDCProvider) {
			p.ClaimMappings.Username.Claim = "sub"
		}, "oidcProviders[0].claimMappings.username: Invalid value"},
		{"a prefix for groups from an expression", func(p *configv1.OIDCProvider) {
			p.ClaimMappings.Groups.Prefix = "sso:"
		}, "oidcProviders[0].claimMappings.groups.prefix: Forbidden"},
		{"an unverified email address as username", func(p *configv1.OIDCProvider) {
			p.ClaimMappings.Username.Expression = "claims.email"
		}, "claims.email_verified must be used"},
		{"the issuer of service accounts", func(p *configv1.OIDCProvider) {
			p.Issuer.URL = defaultIssuer
		}, "oidcProviders[0].issuer.issuerURL: Invalid value"},
		{"an issuer without TLS", func(p *configv1.OIDCProvider) { p.Issuer.URL = "http://sso.example.com" }, "URL scheme must be https"},
	}
	for _, tc := range cases {
		t.Run("When a provider has "+tc.name+" the API server should use or reject the provider", func(t *testing.T) {
			provider := byExpressions()
			tc.edit(&provider)
			g, hcp := NewWithT(t), oidcCluster(provider)
			if tc.want == "" {
				g.Expect(refusals(t, hcp)).To(Succeed())
				g.Expect(issuersOf(t, hcp)).To(HaveLen(1))
				return
			}
			g.Expect(refusals(t, hcp)).To(MatchError(And(ContainSubstring(tc.want), ContainSubstring("tokens of the provider sso are refused"))))
			g.Expect(issuersOf(t, hcp)).To(BeEmpty(), "a provider is not served by halves")
		})
	}
	t.Run("When the type is not OIDC, it should reject the providers", func(t *testing.T) {
		hcp := oidcCluster(byClaims())
		hcp.Spec.Configuration.Authentication.Type = configv1.AuthenticationTypeNone
		NewWithT(t).Expect(refusals(t, hcp)).To(MatchError(ContainSubstring("oidcProviders: Forbidden")))
	})
	t.Run("When one of several providers is invalid, it should use the others and name the invalid one", func(t *testing.T) {
		g, bad, last := NewWithT(t), byExpressions(), byClaims()
		bad.Name, bad.Issuer.URL = "bad", "https://bad.example.com"
		bad.UserValidationRules[0].Expression = "user.username"
		last.Name, last.Issuer.URL, last.Issuer.DiscoveryURL = "last", "https://last.example.com", ""
		hcp := oidcCluster(byClaims())
		authentication := hcp.Spec.Configuration.Authentication
		authentication.OIDCProviders = append(authentication.OIDCProviders, bad, last, byClaims())
		g.Expect(issuersOf(t, hcp)).To(Equal([]string{"https://sso.example.com", "https://last.example.com"}))
		g.Expect(refusals(t, hcp)).To(MatchError(And(ContainSubstring("oidcProviders[1].userValidationRules[0].expression"),
			ContainSubstring("oidcProviders[3].issuer.issuerURL: Duplicate value"))))
	})
}

// issuersOf returns the issuers in the API server's authentication file.
func issuersOf(t *testing.T, hcp *hyperv1.HostedControlPlane) []string {
	t.Helper()
	file := &corev1.ConfigMap{}
	if err := adaptAuthentication(t.Context(), &component.Scope{Client: hostedClient(), HCP: hcp, Version: "1.36.3"},
		file); err != nil {
		t.Fatal(err)
	}
	var config apiserverv1.AuthenticationConfiguration
	if err := yaml.UnmarshalStrict([]byte(file.Data[authenticationKey]), &config); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, jwt := range config.JWT {
		urls = append(urls, jwt.Issuer.URL)
	}
	return urls
}

func TestUsernamePrefix(t *testing.T) {
	cases := []struct {
		mapping configv1.UsernameClaimMapping
		want    string
	}{
		{configv1.UsernameClaimMapping{Claim: "sub"}, "https://sso.example.com#"},
		{configv1.UsernameClaimMapping{Claim: "email"}, ""},
		{configv1.UsernameClaimMapping{Claim: "sub", PrefixPolicy: configv1.NoPrefix}, ""},
		{configv1.UsernameClaimMapping{Claim: "sub", PrefixPolicy: configv1.Prefix, Prefix: &configv1.UsernamePrefix{PrefixString: "a:"}}, "a:"},
	}
	for _, tc := range cases {
		t.Run("When the claim is "+tc.mapping.Claim+" under policy "+string(tc.mapping.PrefixPolicy)+" it should have the expected prefix", func(t *testing.T) {
			g := NewWithT(t)
			provider := byClaims()
			provider.ClaimMappings.Username = tc.mapping
			config, refusals, err := authenticators(t.Context(), hostedClient(), oidcCluster(provider))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(refusals).To(BeEmpty())
			g.Expect(config.JWT[0].ClaimMappings.Username.Prefix).To(HaveValue(Equal(tc.want)))
		})
	}
}

func TestAuthenticationVersion(t *testing.T) {
	for version, want := range map[string]string{"1.31.0": "v1beta1", "1.33.13": "v1beta1", "1.34.0": "v1", "1.36.3": "v1"} {
		t.Run("When the API server is "+version+" it should get a version that it reads", func(t *testing.T) {
			g := NewWithT(t)
			config, _, err := authenticators(t.Context(), hostedClient(), oidcCluster(byExpressions()))
			g.Expect(err).NotTo(HaveOccurred())
			text, err := encodeAuthentication(config, version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Split(text, "\n")).To(ContainElements("apiVersion: apiserver.config.k8s.io/"+want, "kind: AuthenticationConfiguration"))
		})
	}
}
