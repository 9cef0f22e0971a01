// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/api/util/contract"
)

// ProviderSays is what a provider of Cluster API's contract v1beta1 says of a machine. The zero value says nothing.
type ProviderSays struct {
	// FailureReason and FailureMessage are why it gave the machine up; nil or empty while it has not.
	FailureReason, FailureMessage *string
	Conditions                    []contract.Condition
}

// Failure is why the provider gave the machine up; empty while it has not.
func (s ProviderSays) Failure() (reason, message string) {
	if reason = ptr.Deref(s.FailureReason, ""); reason == "" {
		return "", ""
	}
	return reason, cmp.Or(ptr.Deref(s.FailureMessage, ""), "the provider gave the machine up")
}

// Problem is why the provider gave the machine up, or else the first of these stages that the machine has not reached.
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

// StartedWith is the start of a machine that begins when it reaches a stage.
func (s ProviderSays) StartedWith(stage string) MachineStart {
	var start MachineStart
	if c := contract.Find(s.Conditions, stage); c != nil && c.Status == metav1.ConditionTrue {
		start.Begun = c.LastTransitionTime.Time
	}
	start.Reason, start.Message = s.Failure()
	return start
}
