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
	raw, err := yaml.Marshal(auditPolicy(auditProfile(scope.HCP)))
	if err != nil {
		return fmt.Errorf("rendering the audit policy: %w", err)
	}
	cm.Data = map[string]string{auditPolicyKey: string(raw), "profile": string(auditProfile(scope.HCP))}
	return nil
}

func auditProfile(hcp *hyperv1.HostedControlPlane) configv1.AuditProfileType {
	config := hcp.Spec.Configuration
	if config == nil || config.APIServer == nil || config.APIServer.Audit.Profile == "" {
		return configv1.DefaultAuditProfileType
	}
	return config.APIServer.Audit.Profile
}

func auditPolicy(profile configv1.AuditProfileType) auditv1.Policy {
	policy := auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived},
	}
	if profile == configv1.NoneAuditProfileType {
		policy.Rules = []auditv1.PolicyRule{{Level: auditv1.LevelNone}}
		return policy
	}
	policy.Rules = append(noise(), bodies(profile)...)
	policy.Rules = append(policy.Rules, auditv1.PolicyRule{Level: auditv1.LevelMetadata})
	return policy
}

// noise are requests that every cluster makes all the time and that nobody looks for.
func noise() []auditv1.PolicyRule {
	return []auditv1.PolicyRule{
		{Level: auditv1.LevelNone, Resources: []auditv1.GroupResources{{Group: "", Resources: []string{"events"}}, {Group: "events.k8s.io", Resources: []string{"events"}}}},
		{Level: auditv1.LevelNone, Resources: []auditv1.GroupResources{{Group: "coordination.k8s.io", Resources: []string{"leases"}}}},
		{Level: auditv1.LevelNone, NonResourceURLs: []string{"/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*"}},
		{Level: auditv1.LevelNone, Verbs: []string{"watch"}, UserGroups: []string{"system:nodes"}},
	}
}

// bodies are the rules that log more than who did what. What holds secrets is never logged with its body.
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
