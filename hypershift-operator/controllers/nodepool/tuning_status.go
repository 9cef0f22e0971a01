// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// performanceConditions are the conditions of a PerformanceProfile that the node tuning operator reports.
var performanceConditions = []string{"Available", "Progressing", "Upgradeable", "Degraded"}

// reportPerformance copies the node tuning operator's conditions of the pool's PerformanceProfile, which appear after
// some time.
func (r *Reconciler) reportPerformance(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	for _, name := range performanceConditions {
		s.Clear(hyperv1.NodePoolPerformanceProfileConditionPrefix + name)
	}
	if !s.Distribution().OwnOperators || len(s.Pool.Spec.TuningConfig) == 0 {
		return ctrl.Result{}, nil
	}
	statuses, err := r.listConfigs(ctx, s.Namespace(), client.MatchingLabels{performanceStatusLabel: "true", hyperv1.NodePoolAnnotation: s.Pool.Name})
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, source := range statuses {
		var status struct{ Conditions []metav1.Condition }
		if err := yaml.Unmarshal([]byte(source.Data["status"]), &status); err != nil {
			return ctrl.Result{}, fmt.Errorf("reading the PerformanceProfile's status in ConfigMap %s/%s: %w", source.Namespace, source.Name, err)
		}
		for _, c := range status.Conditions {
			if slices.Contains(performanceConditions, c.Type) {
				c.Type = hyperv1.NodePoolPerformanceProfileConditionPrefix + c.Type
				c.Reason = cmp.Or(c.Reason, hyperv1.AsExpectedReason)
				s.SetCondition(c)
			}
		}
	}
	return ctrl.Result{}, nil
}
