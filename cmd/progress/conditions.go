// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FirstUnmet describes the first of these conditions that exists and is not True. inOrder lists them in the order in
// which they become true, so the first unmet one is the cause.
func FirstUnmet(conditions []metav1.Condition, inOrder ...string) string {
	for _, wanted := range inOrder {
		got := meta.FindStatusCondition(conditions, wanted)
		if got == nil || got.Status == metav1.ConditionTrue {
			continue
		}
		return fmt.Sprintf("%s is %s (%s): %s", got.Type, got.Status, got.Reason, got.Message)
	}
	return "waiting for the operator"
}
