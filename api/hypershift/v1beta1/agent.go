// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AgentPlatformSpec says how a cluster uses machines that an assisted installer has discovered.
type AgentPlatformSpec struct {
	// agentNamespace is the namespace of the Agent objects.
	//
	// +kubebuilder:validation:MaxLength=63
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message=`platform.agent.agentNamespace must be the name of a namespace: lower case letters, digits and '-'`
	AgentNamespace string `json:"agentNamespace"`
}

// AgentNodePoolPlatform says which agents serve a pool.
type AgentNodePoolPlatform struct {
	// agentLabelSelector picks agents by their labels. Absent means any. A change rolls the pool.
	//
	// +optional
	AgentLabelSelector *metav1.LabelSelector `json:"agentLabelSelector,omitempty"`
}
