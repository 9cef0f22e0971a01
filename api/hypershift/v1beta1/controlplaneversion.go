// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControlPlaneVersionStatus is the version of the control plane, without the nodes.
type ControlPlaneVersionStatus struct {
	// desired is the version that the control plane is moving to.
	// +required
	Desired configv1.Release `json:"desired"`

	// history is the versions that the control plane had, newest first.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	History []ControlPlaneUpdateHistory `json:"history,omitempty"`

	// observedGeneration is the generation of the spec that this tells of.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740992
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ControlPlaneUpdateHistory is one version that the control plane had.
type ControlPlaneUpdateHistory struct {
	// state is Completed when every component has the version, and Partial until then.
	// +kubebuilder:validation:Enum=Completed;Partial
	// +required
	State configv1.UpdateState `json:"state"`

	// startedTime is when the move to the version began.
	// +required
	StartedTime metav1.Time `json:"startedTime"`

	// completionTime is when every component had the version. Unset while Partial.
	// +optional
	CompletionTime metav1.Time `json:"completionTime,omitzero"`

	// version is the version, e.g. "4.20.3".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9]+\.[0-9]+\.[0-9]+')`,message=`version must be a semantic version such as 4.20.3`
	Version string `json:"version"`

	// image is the payload's pull spec.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=447
	// +required
	Image string `json:"image"`
}
