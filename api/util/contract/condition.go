// SPDX-License-Identifier: Apache-2.0

// Package contract holds what is the same in the kinds of all providers of Cluster API's contract v1beta1.
//
// +kubebuilder:object:generate=true
package contract

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition is one of the contract, or one of Kubernetes, which newer providers write.
type Condition struct {
	// type of the condition.
	//
	// +required
	Type string `json:"type"`

	// status is True, False or Unknown.
	//
	// +required
	Status metav1.ConditionStatus `json:"status"`

	// severity says how bad a status of False is: Error, Warning or Info.
	//
	// +optional
	Severity string `json:"severity,omitempty"`

	// lastTransitionTime is when the status changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// reason in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message for people.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Find returns the condition of a type, and nil when there is none.
func Find(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}
