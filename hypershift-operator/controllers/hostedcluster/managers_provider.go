package hostedcluster

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

const capiProviderName = "capi-provider"

// reconcileCAPIProvider runs the platform's Cluster API provider for the cluster.
func (r *Reconciler) reconcileCAPIProvider(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !r.wantsManagers(s) {
		return ctrl.Result{}, nil
	}
	spec := s.platform.ProviderDeployment(s.cluster(r.Settings.OperatorImage))
	if spec == nil {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.applyManager(ctx, s, manager{
		name: capiProviderName, spec: *spec, rules: capiProviderRules(s.platform.ProviderPolicyRules()),
		finalizers: []string{componentFinalizer},
	})
}

func capiProviderRules(extra []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return append([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"events", "secrets", "configmaps"}, Verbs: allVerbs},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		{APIGroups: capiGroups, Resources: []string{"*"}, Verbs: allVerbs},
		{APIGroups: []string{"hypershift.openshift.io"}, Resources: []string{"*"}, Verbs: allVerbs},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: allVerbs},
	}, extra...)
}
