// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// authenticators maps the cluster's providers, one to one, to kube-apiserver's authenticators. A provider that
// kube-apiserver cannot fully support is left out with all its tokens: without one of its rules, the API server would
// accept tokens that the user forbade. The refusals say why a provider is left out.
func authenticators(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) (*apiserver.AuthenticationConfiguration, []error, error) {
	config := &apiserver.AuthenticationConfiguration{}
	refusals := unasked(hcp)
	for i, provider := range providers(hcp) {
		path := providersPath.Index(i)
		jwt, faults := authenticator(provider, path)
		bundle, fault, err := issuerCA(ctx, c, hcp.Namespace, provider.Issuer.CertificateAuthority.Name, path)
		if err != nil {
			return nil, nil, err
		}
		if jwt.Issuer.CertificateAuthority = bundle; fault != nil {
			faults = append(faults, fault)
		}
		if len(faults) == 0 {
			faults = validate(hcp, config.JWT, jwt, path)
		}
		if len(faults) > 0 {
			refusals = append(refusals, fmt.Errorf("%w: tokens of the provider %s are refused until this is fixed", faults.ToAggregate(), provider.Name))
			continue
		}
		config.JWT = append(config.JWT, jwt)
	}
	return config, refusals, nil
}

// unasked returns errors for configured providers that the API server does not use.
func unasked(hcp *hyperv1.HostedControlPlane) []error {
	if len(authenticationOf(hcp).OIDCProviders) == len(providers(hcp)) {
		return nil
	}
	return []error{field.Forbidden(providersPath, "it needs configuration.authentication.type OIDC")}
}

// authenticator maps a provider field by field. A setting that kube-apiserver does not support is an error; it is
// never ignored.
func authenticator(provider configv1.OIDCProvider, path *field.Path) (apiserver.JWTAuthenticator, field.ErrorList) {
	mappings := path.Child("claimMappings")
	username, errs := username(provider, mappings.Child("username"))
	groups, groupErrs := groups(provider.ClaimMappings.Groups, mappings.Child("groups"))
	uid, uidErrs := uid(provider.ClaimMappings.UID, mappings.Child("uid"))
	rules, ruleErrs := claimRules(provider.ClaimValidationRules, path.Child("claimValidationRules"))
	errs = append(append(append(errs, groupErrs...), uidErrs...), ruleErrs...)
	if len(provider.ExternalClaimsSources) > 0 {
		errs = append(errs, field.Forbidden(path.Child("externalClaimsSources"),
			"kube-apiserver knows only the claims of the token itself; remove it, and have the issuer put the claims into the token"))
	}
	return apiserver.JWTAuthenticator{
		Issuer: issuer(provider.Issuer),
		ClaimMappings: apiserver.ClaimMappings{
			Username: username, Groups: groups, UID: uid, Extra: extra(provider.ClaimMappings.Extra),
		},
		ClaimValidationRules: rules,
		UserValidationRules:  userRules(provider.UserValidationRules),
	}, errs
}

func issuer(from configv1.TokenIssuer) apiserver.Issuer {
	to := apiserver.Issuer{URL: from.URL, DiscoveryURL: from.DiscoveryURL}
	for _, audience := range from.Audiences {
		to.Audiences = append(to.Audiences, string(audience))
	}
	if len(to.Audiences) > 1 {
		to.AudienceMatchPolicy = apiserver.AudienceMatchPolicyMatchAny
	}
	return to
}

// username maps the name claim. Unless the user sets a prefix, names other than e-mail addresses get the issuer as
// prefix, so that two issuers cannot name the same user. An expression defines the complete name, so it gets no prefix.
func username(provider configv1.OIDCProvider, path *field.Path) (apiserver.PrefixedClaimOrExpression, field.ErrorList) {
	from := provider.ClaimMappings.Username
	to := apiserver.PrefixedClaimOrExpression{Claim: from.Claim, Expression: from.Expression}
	prefix := ""
	switch from.PrefixPolicy {
	case configv1.Prefix:
		if from.Prefix == nil || from.Prefix.PrefixString == "" {
			return to, field.ErrorList{field.Required(path.Child("prefix", "prefixString"), "prefixPolicy is Prefix")}
		}
		to.Prefix = &from.Prefix.PrefixString
		return to, nil
	case configv1.NoPrefix:
	case configv1.NoOpinion:
		if from.Claim != "email" {
			prefix = provider.Issuer.URL + "#"
		}
	default:
		return to, field.ErrorList{field.NotSupported(path.Child("prefixPolicy"), from.PrefixPolicy, []configv1.UsernamePrefixPolicy{configv1.Prefix, configv1.NoPrefix})}
	}
	if from.Prefix != nil {
		return to, field.ErrorList{field.Forbidden(path.Child("prefix"), "it needs prefixPolicy Prefix")}
	}
	if from.Expression == "" {
		to.Prefix = &prefix
	}
	return to, nil
}

func groups(from configv1.PrefixedClaimMapping, path *field.Path) (apiserver.PrefixedClaimOrExpression, field.ErrorList) {
	to := apiserver.PrefixedClaimOrExpression{Claim: from.Claim, Expression: from.Expression}
	if from.Prefix != "" && from.Claim == "" {
		return to, field.ErrorList{field.Forbidden(path.Child("prefix"), "it needs claim")}
	}
	if from.Claim != "" {
		to.Prefix = &from.Prefix
	}
	return to, nil
}

// uid defaults to the claim "sub", as the API documents.
func uid(from *configv1.TokenClaimOrExpressionMapping, path *field.Path) (apiserver.ClaimOrExpression, field.ErrorList) {
	if from == nil {
		return apiserver.ClaimOrExpression{Claim: "sub"}, nil
	}
	if from.Claim == "" && from.Expression == "" {
		return apiserver.ClaimOrExpression{}, field.ErrorList{field.Required(path, "claim or expression is required")}
	}
	return apiserver.ClaimOrExpression{Claim: from.Claim, Expression: from.Expression}, nil
}

func extra(from []configv1.ExtraMapping) []apiserver.ExtraMapping {
	var to []apiserver.ExtraMapping
	for _, mapping := range from {
		to = append(to, apiserver.ExtraMapping{Key: mapping.Key, ValueExpression: mapping.ValueExpression})
	}
	return to
}

func claimRules(from []configv1.TokenClaimValidationRule, path *field.Path) ([]apiserver.ClaimValidationRule, field.ErrorList) {
	var to []apiserver.ClaimValidationRule
	var errs field.ErrorList
	for i, rule := range from {
		mapped, err := claimRule(rule, path.Index(i))
		if err != nil {
			errs = append(errs, err)
		}
		to = append(to, mapped)
	}
	return to, errs
}

func claimRule(from configv1.TokenClaimValidationRule, path *field.Path) (apiserver.ClaimValidationRule, *field.Error) {
	noCEL := from.CEL == configv1.TokenClaimValidationCELRule{}
	var to apiserver.ClaimValidationRule
	switch from.Type {
	case configv1.TokenValidationRuleTypeRequiredClaim:
		if !noCEL {
			return to, field.Forbidden(path.Child("cel"), "it needs type CEL")
		}
		if from.RequiredClaim == nil || from.RequiredClaim.Claim == "" {
			return to, field.Required(path.Child("requiredClaim", "claim"), "type is RequiredClaim")
		}
		to.Claim, to.RequiredValue = from.RequiredClaim.Claim, from.RequiredClaim.RequiredValue
	case configv1.TokenValidationRuleTypeCEL:
		if from.RequiredClaim != nil {
			return to, field.Forbidden(path.Child("requiredClaim"), "it needs type RequiredClaim")
		}
		if from.CEL.Expression == "" {
			return to, field.Required(path.Child("cel", "expression"), "type is CEL")
		}
		to.Expression, to.Message = from.CEL.Expression, from.CEL.Message
	default:
		return to, field.NotSupported(path.Child("type"), from.Type,
			[]configv1.TokenValidationRuleType{configv1.TokenValidationRuleTypeRequiredClaim, configv1.TokenValidationRuleTypeCEL})
	}
	return to, nil
}

func userRules(from []configv1.TokenUserValidationRule) []apiserver.UserValidationRule {
	var to []apiserver.UserValidationRule
	for _, rule := range from {
		to = append(to, apiserver.UserValidationRule{Expression: rule.Expression, Message: rule.Message})
	}
	return to
}
