// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// SetCondition sets a condition of this reconcile.
func (s *Scope) SetCondition(c metav1.Condition) { s.Conditions[c.Type] = c }

// SetTrue sets a condition to True, as expected.
func (s *Scope) SetTrue(conditionType, message string) {
	s.SetCondition(condition.True(conditionType, hyperv1.AsExpectedReason, message))
}

// SetFalse sets a condition to False.
func (s *Scope) SetFalse(conditionType, reason, message string) {
	s.SetCondition(condition.False(conditionType, reason, message))
}

// Clear removes a condition that no longer applies, even if this reconcile has set it.
func (s *Scope) Clear(conditionType string) {
	delete(s.Conditions, conditionType)
	s.Cleared = append(s.Cleared, conditionType)
}

// Merged returns the last conditions with those of this reconcile. NodePool conditions have a type different from
// metav1.Condition.
func (s *Scope) Merged() []metav1.Condition {
	last := s.Pool.Status.Conditions
	var merged []metav1.Condition
	for _, c := range last {
		if slices.Contains(s.Cleared, c.Type) {
			continue
		}
		merged = append(merged, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			LastTransitionTime: c.LastTransitionTime, ObservedGeneration: c.ObservedGeneration,
		})
	}
	var current []metav1.Condition
	for _, c := range s.Conditions {
		c.LastTransitionTime = metav1.NewTime(s.Now)
		if existing := Find(last, c.Type); existing != nil && existing.Status == corev1.ConditionStatus(c.Status) {
			// Keep the time even if this reconcile cleared the condition and then set it again.
			c.LastTransitionTime = existing.LastTransitionTime
		}
		current = append(current, c)
	}
	slices.SortFunc(current, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return condition.Merge(merged, s.Pool.Generation, current...)
}

// Find returns the condition of a type; nil if there is none.
func Find(conditions []hyperv1.NodePoolCondition, conditionType string) *hyperv1.NodePoolCondition {
	i := slices.IndexFunc(conditions, func(c hyperv1.NodePoolCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
