// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

var providersPath = field.NewPath("configuration", "authentication", "oidcProviders")

// claimsCompiler compiles CEL as kube-apiserver does. Creating a compiler takes longer than using it.
var claimsCompiler = sync.OnceValue(authenticationcel.NewDefaultCompiler)

// validate runs kube-apiserver's own validation on an authenticator, together with those that were accepted before. It
// translates the errors to the field names of the HostedControlPlane.
func validate(hcp *hyperv1.HostedControlPlane, accepted []apiserver.JWTAuthenticator, jwt apiserver.JWTAuthenticator, path *field.Path) field.ErrorList {
	config := &apiserver.AuthenticationConfiguration{JWT: append(slices.Clone(accepted), jwt)}
	errs := validation.ValidateAuthenticationConfiguration(claimsCompiler(), config, []string{serviceAccountIssuer(hcp)})
	for _, err := range errs {
		err.Field = ourField(strings.Replace(err.Field, fmt.Sprintf("jwt[%d]", len(accepted)), path.String(), 1))
	}
	return errs
}

// ourField translates a path below an authenticator to the HostedControlPlane's field. A path with the same name in
// both stays unchanged.
func ourField(path string) string {
	path = strings.NewReplacer(
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
