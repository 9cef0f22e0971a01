package kubeapiserver

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

var providersPath = field.NewPath("configuration", "authentication", "oidcProviders")

// ValidateAuthentication says which fields of the cluster's OpenID Connect providers kube-apiserver would not honour; nil if it
// honours all. The contents of the issuers' CAs are looked at when the configuration is rendered.
func ValidateAuthentication(hcp *hyperv1.HostedControlPlane) error {
	if config := hcp.Spec.Configuration; config != nil && config.Authentication != nil && len(config.Authentication.OIDCProviders) > 0 && !hasProvidersIn(hcp) {
		return field.Forbidden(providersPath, "it needs configuration.authentication.type OIDC")
	}
	config, errs := authenticators(hcp)
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	return validateAuthenticators(hcp, config)
}

// claimsCompiler compiles CEL as kube-apiserver does. Making one takes longer than using it.
var claimsCompiler = sync.OnceValue(authenticationcel.NewDefaultCompiler)

// validateAuthenticators asks kube-apiserver's own validation, and says its answer in the names of our fields.
func validateAuthenticators(hcp *hyperv1.HostedControlPlane, config *apiserver.AuthenticationConfiguration) error {
	errs := validation.ValidateAuthenticationConfiguration(claimsCompiler(), config, []string{serviceAccountIssuer(hcp)})
	for _, err := range errs {
		err.Field = ourField(err.Field)
	}
	return errs.ToAggregate()
}

// ourField translates a path of kube-apiserver's configuration; where it has no other name, it is the same.
func ourField(path string) string {
	path = strings.NewReplacer(
		"jwt", providersPath.String(),
		".issuer.url", ".issuer.issuerURL",
		".issuer.certificateAuthority", ".issuer.issuerCertificateAuthority",
	).Replace(path)
	rule, name, ok := strings.Cut(path, "].claimValidationRules[")
	if !ok {
		return path
	}
	name = strings.NewReplacer(
		".claim", ".requiredClaim.claim", ".requiredValue", ".requiredClaim.requiredValue",
		".expression", ".cel.expression", ".message", ".cel.message",
	).Replace(name)
	return rule + "].claimValidationRules[" + name
}
