// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/hypershift/api/util/contract"
)

// KubevirtMachineSpec is the virtual machine of a machine.
type KubevirtMachineSpec struct {
	// virtualMachineTemplate is what the VirtualMachine is made after.
	//
	// +optional
	VirtualMachineTemplate VirtualMachineTemplate `json:"virtualMachineTemplate,omitempty"`

	// virtualMachineBootstrapCheck says how the provider finds out that the machine has started.
	//
	// +optional
	BootstrapCheckSpec BootstrapCheck `json:"virtualMachineBootstrapCheck,omitempty"`

	// infraClusterSecretRef is the Secret with the kubeconfig of the cluster that runs the virtual machine. Absent means that of the
	// KubevirtCluster.
	//
	// +optional
	InfraClusterSecretRef *corev1.ObjectReference `json:"infraClusterSecretRef,omitempty"`

	// providerID is kubevirt:// and the name of the machine, when the provider has made it.
	//
	// +optional
	ProviderID *string `json:"providerID,omitempty"`
}

// VirtualMachineTemplate is a VirtualMachine of KubeVirt without a name.
type VirtualMachineTemplate struct {
	// metadata of the VirtualMachine.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	ObjectMeta VirtualMachineMeta `json:"metadata,omitempty"`

	// spec is the spec of a VirtualMachine of kubevirt.io/v1, as it is. It is KubeVirt's to say what is in it, and users may patch
	// it: a type of ours would lose what it does not know.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec runtime.RawExtension `json:"spec,omitempty"`
}

// VirtualMachineMeta is the part of a VirtualMachine's metadata that can be chosen.
type VirtualMachineMeta struct {
	// namespace of the VirtualMachine. Empty means the one that the kubeconfig names, or else that of the machine.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// labels of the VirtualMachine.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the VirtualMachine.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// BootstrapCheck says how the provider finds out that a machine has started.
type BootstrapCheck struct {
	// checkStrategy is ssh, which looks for a file on the machine, or none.
	//
	// +kubebuilder:validation:Enum=none;ssh
	// +kubebuilder:default=ssh
	// +optional
	CheckStrategy string `json:"checkStrategy,omitempty"`
}

// KubevirtMachineStatus is how far the virtual machine is.
type KubevirtMachineStatus struct {
	// ready is true when the virtual machine runs.
	//
	// +kubebuilder:default=false
	// +optional
	Ready bool `json:"ready"`

	// initialization says what the v1beta2 contract of Cluster API asks for; providers of the v1beta1 contract leave it out.
	//
	// +optional
	Initialization *KubevirtMachineInitialization `json:"initialization,omitempty"`

	// loadBalancerConfigured is true when the machine was added to a load balancer.
	//
	// +optional
	LoadBalancerConfigured bool `json:"loadBalancerConfigured,omitempty"`

	// addresses of the machine.
	//
	// +optional
	Addresses []MachineAddress `json:"addresses,omitempty"`

	// nodeupdated is true when the machine's Node has the provider ID.
	//
	// +optional
	NodeUpdated bool `json:"nodeupdated"`

	// failureReason is why the machine will never be ready, in one word.
	//
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage is why the machine will never be ready.
	//
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// conditions of the machine.
	//
	// +optional
	Conditions []contract.Condition `json:"conditions,omitempty"`
}

// KubevirtMachineInitialization is what Cluster API waits for before it takes the provider ID over.
type KubevirtMachineInitialization struct {
	// provisioned is true once the virtual machine was made, and stays it.
	//
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// MachineAddress is an address of a machine.
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

// KubevirtMachine is a virtual machine that becomes a machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=kubevirtmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1"}
type KubevirtMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the machine.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec KubevirtMachineSpec `json:"spec,omitempty"`

	// status of the machine.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status KubevirtMachineStatus `json:"status,omitempty"`
}

// KubevirtMachineList is a list of KubevirtMachines.
//
// +kubebuilder:object:root=true
type KubevirtMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubevirtMachine `json:"items"`
}

// KubevirtMachineTemplateSpec holds the machine that KubevirtMachines are made after.
type KubevirtMachineTemplateSpec struct {
	// template of a KubevirtMachine.
	//
	// +required
	Template KubevirtMachineTemplateResource `json:"template"`
}

// KubevirtMachineTemplateResource is a KubevirtMachine without a name.
type KubevirtMachineTemplateResource struct {
	// spec of the machines.
	//
	// +required
	Spec KubevirtMachineSpec `json:"spec"`
}

// KubevirtMachineTemplate is what a set of KubevirtMachines is made after.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubevirtmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1"}
type KubevirtMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec KubevirtMachineTemplateSpec `json:"spec,omitempty"`
}

// KubevirtMachineTemplateList is a list of KubevirtMachineTemplates.
//
// +kubebuilder:object:root=true
type KubevirtMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubevirtMachineTemplate `json:"items"`
}
