// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ControlPlaneComponent tells how one component of a hosted control plane is. The operator makes one per component;
// it is not meant to be written by people.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=controlplanecomponents,shortName=cpc;cpcs,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.version",description="Version that the component runs"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].status",description="Whether the component serves"
// +kubebuilder:printcolumn:name="RolloutComplete",type="string",JSONPath=".status.conditions[?(@.type==\"RolloutComplete\")].status",description="Whether every replica has the version and configuration that it should have"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Available\")].message",description="Why the component is (not) available"
// +kubebuilder:printcolumn:name="RolloutCompleteMessage",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"RolloutComplete\")].message",description="Why the rollout is (not) complete"
type ControlPlaneComponent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is empty.
	Spec ControlPlaneComponentSpec `json:"spec,omitempty"`
	// status is how the component is.
	Status ControlPlaneComponentStatus `json:"status,omitempty"`
}

// ControlPlaneComponentSpec is empty.
type ControlPlaneComponentSpec struct{}

// ControlPlaneComponentStatus is how a component is.
type ControlPlaneComponentStatus struct {
	// conditions are Available and RolloutComplete.
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// version is the version that every replica runs. It changes when a rollout is complete.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Version string `json:"version,omitempty"`

	// resources are the objects that were made for the component.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Resources []ComponentResource `json:"resources,omitempty"`

	// observedGeneration is the generation of the HostedControlPlane that this tells of.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740992
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ComponentResource names an object that was made for a component.
type ComponentResource struct {
	// group is the API group; empty for the core group.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Group string `json:"group"`

	// kind is the kind.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Kind string `json:"kind"`

	// name is the name.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`
}

// ControlPlaneComponentList is a list of ControlPlaneComponents.
//
// +kubebuilder:object:root=true
type ControlPlaneComponentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ControlPlaneComponent `json:"items"`
}
