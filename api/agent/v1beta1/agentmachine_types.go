// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/api/util/contract"
)

// AgentMachineSpec says which host a machine may be.
type AgentMachineSpec struct {
	// agentLabelSelector picks agents by their labels. Absent means any.
	//
	// +optional
	AgentLabelSelector *metav1.LabelSelector `json:"agentLabelSelector,omitempty"`

	// providerID is agent:// and the host's ID, when the provider has found one.
	//
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
}

// AgentMachineStatus is how far the host is.
type AgentMachineStatus struct {
	// ready is true when the host is installed.
	//
	// +optional
	Ready bool `json:"ready"`

	// agentRef is the agent that became the machine.
	//
	// +optional
	AgentRef *AgentReference `json:"agentRef,omitempty"`

	// addresses of the host.
	//
	// +optional
	Addresses []MachineAddress `json:"addresses,omitempty"`

	// failureReason is why the machine will never be ready, in one word.
	//
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage is why the machine will never be ready.
	//
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// conditions of the machine, in the form of Cluster API's contract v1beta1.
	//
	// +optional
	Conditions []contract.Condition `json:"conditions,omitempty"`
}

// AgentReference names an agent.
type AgentReference struct {
	// namespace of the agent.
	//
	// +required
	Namespace string `json:"namespace"`

	// name of the agent.
	//
	// +required
	Name string `json:"name"`
}

// MachineAddress is an address of a host.
type MachineAddress struct {
	// type is Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.
	//
	// +required
	Type string `json:"type"`

	// address is the name or the IP address.
	//
	// +required
	Address string `json:"address"`
}

// AgentMachine is a host that becomes a machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=agentmachines,scope=Namespaced,categories=cluster-api,shortName=agentm
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1beta1"}
type AgentMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the machine.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec AgentMachineSpec `json:"spec,omitempty"`

	// status of the machine.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status AgentMachineStatus `json:"status,omitempty"`
}

// AgentMachineList is a list of AgentMachines.
//
// +kubebuilder:object:root=true
type AgentMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentMachine `json:"items"`
}

// AgentMachineTemplateSpec holds the machine that AgentMachines are made after.
type AgentMachineTemplateSpec struct {
	// template of an AgentMachine.
	//
	// +required
	Template AgentMachineTemplateResource `json:"template"`
}

// AgentMachineTemplateResource is an AgentMachine without a name.
type AgentMachineTemplateResource struct {
	// spec of the machines.
	//
	// +required
	Spec AgentMachineSpec `json:"spec"`
}

// AgentMachineTemplate is what a set of AgentMachines is made after.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=agentmachinetemplates,scope=Namespaced,categories=cluster-api,shortName=agentmt
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1beta1"}
type AgentMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec AgentMachineTemplateSpec `json:"spec,omitempty"`
}

// AgentMachineTemplateList is a list of AgentMachineTemplates.
//
// +kubebuilder:object:root=true
type AgentMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentMachineTemplate `json:"items"`
}
