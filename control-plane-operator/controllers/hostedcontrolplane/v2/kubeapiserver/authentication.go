package kubeapiserver

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const (
	authenticationConfigMap = "auth-config"
	authenticationKey       = "auth.yaml"
	issuerCAKey             = "ca-bundle.crt"
)

func hasProviders(scope *component.Scope) bool { return hasProvidersIn(scope.HCP) }

func hasProvidersIn(hcp *hyperv1.HostedControlPlane) bool { return len(providers(hcp)) > 0 }

// providers are the OpenID Connect issuers whose tokens the API server accepts.
func providers(hcp *hyperv1.HostedControlPlane) []configv1.OIDCProvider {
	config := hcp.Spec.Configuration
	if config == nil || config.Authentication == nil || config.Authentication.Type != configv1.AuthenticationTypeOIDC {
		return nil
	}
	return config.Authentication.OIDCProviders
}

func adaptAuthentication(ctx context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	config := apiserverv1.AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthenticationConfiguration"},
	}
	for _, provider := range providers(scope.HCP) {
		jwt, err := authenticator(ctx, scope, provider)
		if err != nil {
			return fmt.Errorf("OIDC provider %s: %w", provider.Name, err)
		}
		config.JWT = append(config.JWT, jwt)
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("rendering the authentication configuration: %w", err)
	}
	cm.Data = map[string]string{authenticationKey: string(raw)}
	return nil
}

func authenticator(ctx context.Context, scope *component.Scope, provider configv1.OIDCProvider) (apiserverv1.JWTAuthenticator, error) {
	jwt := apiserverv1.JWTAuthenticator{Issuer: apiserverv1.Issuer{URL: provider.Issuer.URL, DiscoveryURL: discoveryURL(provider.Issuer)}}
	for _, audience := range provider.Issuer.Audiences {
		jwt.Issuer.Audiences = append(jwt.Issuer.Audiences, string(audience))
	}
	if len(jwt.Issuer.Audiences) > 1 {
		jwt.Issuer.AudienceMatchPolicy = apiserverv1.AudienceMatchPolicyMatchAny
	}
	if name := provider.Issuer.CertificateAuthority.Name; name != "" {
		cm := &corev1.ConfigMap{}
		if err := scope.Client.Get(ctx, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: name}, cm); err != nil {
			return jwt, fmt.Errorf("reading the issuer's CA in ConfigMap %s: %w", name, err)
		}
		jwt.Issuer.CertificateAuthority = cm.Data[issuerCAKey]
	}
	jwt.ClaimMappings.Username = username(provider)
	if groups := provider.ClaimMappings.Groups; groups.Claim != "" {
		jwt.ClaimMappings.Groups = apiserverv1.PrefixedClaimOrExpression{Claim: groups.Claim, Prefix: ptr.To(groups.Prefix)}
	}
	for _, rule := range provider.ClaimValidationRules {
		if rule.RequiredClaim != nil {
			jwt.ClaimValidationRules = append(jwt.ClaimValidationRules, apiserverv1.ClaimValidationRule{
				Claim: rule.RequiredClaim.Claim, RequiredValue: rule.RequiredClaim.RequiredValue,
			})
		}
	}
	return jwt, nil
}

// discoveryURL is only given when it differs from the issuer's own, which the API server insists on.
func discoveryURL(issuer configv1.TokenIssuer) *string {
	if issuer.DiscoveryURL == "" {
		return nil
	}
	return ptr.To(issuer.DiscoveryURL)
}

// username maps the name claim. Unless the user says otherwise, names other than e-mail addresses carry the issuer, so
// that two issuers cannot name the same user.
func username(provider configv1.OIDCProvider) apiserverv1.PrefixedClaimOrExpression {
	mapping := provider.ClaimMappings.Username
	prefix := ""
	switch {
	case mapping.PrefixPolicy == configv1.Prefix && mapping.Prefix != nil:
		prefix = mapping.Prefix.PrefixString
	case mapping.PrefixPolicy == configv1.NoOpinion && mapping.Claim != "email":
		prefix = provider.Issuer.URL + "#"
	}
	return apiserverv1.PrefixedClaimOrExpression{Claim: mapping.Claim, Prefix: &prefix}
}
