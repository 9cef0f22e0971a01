// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/api/util/contract"
)

// ProviderSays is what a provider of Cluster API's contract v1beta1 reports about a machine. The zero value reports
// nothing.
type ProviderSays struct {
	// FailureReason and FailureMessage are the machine's terminal failure; nil or empty if there is none.
	FailureReason, FailureMessage *string
	Conditions                    []contract.Condition
}

// Failure returns the terminal failure of the machine; empty if there is none.
func (s ProviderSays) Failure() (reason, message string) {
	if reason = ptr.Deref(s.FailureReason, ""); reason == "" {
		return "", ""
	}
	return reason, cmp.Or(ptr.Deref(s.FailureMessage, ""), "the provider reported a terminal failure")
}

// Problem returns the terminal failure of the machine, or else the first of these stages that it has not reached.
func (s ProviderSays) Problem(stages ...string) (reason, message string) {
	if reason, message := s.Failure(); reason != "" {
		return reason, message
	}
	for _, stage := range stages {
		if c := contract.Find(s.Conditions, stage); c != nil && c.Status != metav1.ConditionTrue && c.Reason != "" {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

// StartedWith returns the start of a machine, which begins when the machine reaches a stage.
func (s ProviderSays) StartedWith(stage string) MachineStart {
	var start MachineStart
	if c := contract.Find(s.Conditions, stage); c != nil && c.Status == metav1.ConditionTrue {
		start.Begun = c.LastTransitionTime.Time
	}
	start.Reason, start.Message = s.Failure()
	return start
}
