// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const auditPolicyKey = "policy.yaml"

func adaptAuditPolicy(_ context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	audit := auditOf(scope.HCP)
	raw, err := yaml.Marshal(auditPolicy(audit))
	if err != nil {
		return fmt.Errorf("rendering the audit policy: %w", err)
	}
	cm.Data = map[string]string{auditPolicyKey: string(raw), "profile": string(profileOrDefault(audit.Profile))}
	return nil
}

func auditOf(hcp *hyperv1.HostedControlPlane) configv1.Audit {
	config := hcp.Spec.Configuration
	if config == nil || config.APIServer == nil {
		return configv1.Audit{}
	}
	return config.APIServer.Audit
}

func profileOrDefault(profile configv1.AuditProfileType) configv1.AuditProfileType {
	if profile == "" {
		return configv1.DefaultAuditProfileType
	}
	return profile
}

// auditPolicy puts the rules for specific groups before the general ones, since the API server uses the first rule
// that matches.
func auditPolicy(audit configv1.Audit) auditv1.Policy {
	policy := auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived},
	}
	for _, custom := range audit.CustomRules {
		policy.Rules = append(policy.Rules, groupRules(custom)...)
	}
	policy.Rules = append(policy.Rules, profileRules(profileOrDefault(audit.Profile))...)
	return policy
}

// groupRules returns a profile's rules for the members of one group. They do not apply to other users.
func groupRules(custom configv1.AuditCustomRule) []auditv1.PolicyRule {
	var rules []auditv1.PolicyRule
	for _, rule := range profileRules(profileOrDefault(custom.Profile)) {
		if len(rule.UserGroups) == 0 {
			rule.UserGroups = []string{custom.Group}
			rules = append(rules, rule)
		}
	}
	return rules
}

// profileRules returns the rules of a profile. The last rule matches every request.
func profileRules(profile configv1.AuditProfileType) []auditv1.PolicyRule {
	if profile == configv1.NoneAuditProfileType {
		return []auditv1.PolicyRule{{Level: auditv1.LevelNone}}
	}
	return append(append(noise(), bodies(profile)...), auditv1.PolicyRule{Level: auditv1.LevelMetadata})
}

// noise returns rules for requests that every cluster makes all the time and that have no value in the log.
func noise() []auditv1.PolicyRule {
	return []auditv1.PolicyRule{
		{Level: auditv1.LevelNone, Resources: []auditv1.GroupResources{{Group: "", Resources: []string{"events"}}, {Group: "events.k8s.io", Resources: []string{"events"}}}},
		{Level: auditv1.LevelNone, Resources: []auditv1.GroupResources{{Group: "coordination.k8s.io", Resources: []string{"leases"}}}},
		{Level: auditv1.LevelNone, NonResourceURLs: []string{"/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*"}},
		{Level: auditv1.LevelNone, Verbs: []string{"watch"}, UserGroups: []string{"system:nodes"}},
	}
}

// bodies returns the rules that log more than metadata. A resource that may contain secrets is never logged with its
// body.
func bodies(profile configv1.AuditProfileType) []auditv1.PolicyRule {
	secret := auditv1.PolicyRule{Level: auditv1.LevelMetadata, Resources: []auditv1.GroupResources{
		{Group: "", Resources: []string{"secrets", "configmaps", "serviceaccounts/token"}},
		{Group: "authentication.k8s.io", Resources: []string{"tokenreviews", "tokenrequests"}},
	}}
	switch profile {
	case configv1.WriteRequestBodiesAuditProfileType:
		return []auditv1.PolicyRule{secret, {Level: auditv1.LevelRequestResponse, Verbs: []string{"create", "update", "patch", "delete", "deletecollection"}}}
	case configv1.AllRequestBodiesAuditProfileType:
		return []auditv1.PolicyRule{secret, {Level: auditv1.LevelRequestResponse}}
	default:
		return nil
	}
}
