// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaasMachineTemplateSpec holds the machine that MaasMachines are made after.
type MaasMachineTemplateSpec struct {
	// template of a MaasMachine.
	//
	// +required
	Template MaasMachineTemplateResource `json:"template"`
}

// MaasMachineTemplateResource is a MaasMachine without a name.
type MaasMachineTemplateResource struct {
	// spec of the machines.
	//
	// +required
	Spec MaasMachineSpec `json:"spec"`
}

// MaasMachineTemplateStatus tells what a machine of this template brings, for scaling up from zero.
type MaasMachineTemplateStatus struct {
	// capacity of one machine.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// MaasMachineTemplate is what a set of MaasMachines is made after.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=maasmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/provider=infrastructure-maas","cluster.x-k8s.io/v1beta1=v1beta1","cluster.x-k8s.io/v1beta2=v1beta1"}
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.template.spec.image`
// +kubebuilder:printcolumn:name="Min CPU",type=integer,JSONPath=`.spec.template.spec.minCPU`
// +kubebuilder:printcolumn:name="Min Memory",type=integer,JSONPath=`.spec.template.spec.minMemory`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.template.spec.failureDomain`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.template.spec.resourcePool`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MaasMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the template.
	//
	// +optional
	Spec MaasMachineTemplateSpec `json:"spec,omitempty"`

	// status of the template.
	//
	// +optional
	Status MaasMachineTemplateStatus `json:"status,omitempty"`
}

// MaasMachineTemplateList is a list of MaasMachineTemplates.
//
// +kubebuilder:object:root=true
type MaasMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MaasMachineTemplate `json:"items"`
}
