// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/api/util/contract"
)

// MachineFinalizer is the provider's on an AWSMachine, until its instance is gone.
const MachineFinalizer = "awsmachine.infrastructure.cluster.x-k8s.io"

// AWSMachineSpec is an instance of EC2.
type AWSMachineSpec struct {
	// ProviderID is the instance as its Node names it.
	ProviderID *string `json:"providerID,omitempty"`
	// InstanceID is the instance as EC2 names it.
	InstanceID *string `json:"instanceID,omitempty"`
	// InstanceMetadataOptions restrict who may read the instance's metadata; nil leaves it to AWS.
	InstanceMetadataOptions *InstanceMetadataOptions `json:"instanceMetadataOptions,omitempty"`
	// AMI that the instance starts from.
	AMI AMIReference `json:"ami,omitempty"`
	// InstanceType of EC2, such as m5.large.
	InstanceType string `json:"instanceType"`
	// AdditionalTags of the instance and its volumes.
	AdditionalTags map[string]string `json:"additionalTags,omitempty"`
	// IAMInstanceProfile is what the instance may do in AWS.
	IAMInstanceProfile string `json:"iamInstanceProfile,omitempty"`
	// PublicIP specifies whether the instance gets a public address; nil leaves it to the subnet.
	PublicIP *bool `json:"publicIP,omitempty"`
	// AdditionalSecurityGroups of the instance.
	AdditionalSecurityGroups []AWSResourceReference `json:"additionalSecurityGroups,omitempty"`
	// Subnet of the instance.
	Subnet *AWSResourceReference `json:"subnet,omitempty"`
	// RootVolume of the instance.
	RootVolume *Volume `json:"rootVolume,omitempty"`
	// UncompressedUserData hands the user-data over as it is, and not with gzip.
	UncompressedUserData *bool `json:"uncompressedUserData,omitempty"`
	// CloudInit says how user-data reaches the instance.
	CloudInit CloudInit `json:"cloudInit,omitempty"`
	// SpotMarketOptions make it an instance of the spot market.
	SpotMarketOptions *SpotMarketOptions `json:"spotMarketOptions,omitempty"`
	// Tenancy is default, dedicated or host.
	Tenancy string `json:"tenancy,omitempty"`
	// CapacityReservationID is the reserved capacity to use.
	CapacityReservationID *string `json:"capacityReservationId,omitempty"`
	// MarketType is OnDemand, Spot or CapacityBlock.
	MarketType string `json:"marketType,omitempty"`
	// CapacityReservationPreference is None, Open or CapacityReservationsOnly.
	CapacityReservationPreference string `json:"capacityReservationPreference,omitempty"`
}

// InstanceMetadataOptions restrict who may read the instance's metadata. All fields that the API server gives defaults are here, so that
// what is written is what is read.
type InstanceMetadataOptions struct {
	// HTTPEndpoint is enabled or disabled.
	HTTPEndpoint string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 is enabled or disabled.
	HTTPProtocolIPv6 string `json:"httpProtocolIpv6,omitempty"`
	// HTTPPutResponseHopLimit is how many hops an answer may go, 1 to 64.
	HTTPPutResponseHopLimit int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens is optional, or required: version 2 of the service only.
	HTTPTokens string `json:"httpTokens,omitempty"`
	// InstanceMetadataTags is enabled or disabled.
	InstanceMetadataTags string `json:"instanceMetadataTags,omitempty"`
}

// AMIReference names an image.
type AMIReference struct {
	// ID of the image.
	ID *string `json:"id,omitempty"`
}

// AWSResourceReference names a resource by its ID, or by what it is found by.
type AWSResourceReference struct {
	// ID of the resource.
	ID *string `json:"id,omitempty"`
	// Filters that it is found by.
	Filters []Filter `json:"filters,omitempty"`
}

// Filter is one of EC2's.
type Filter struct {
	// Name of the filter, such as tag:Name.
	Name string `json:"name"`
	// Values of which one must match.
	Values []string `json:"values"`
}

// Volume of an instance.
type Volume struct {
	// Size in GiB.
	Size int64 `json:"size"`
	// Type of EBS, such as gp3; empty leaves it to the image.
	Type string `json:"type,omitempty"`
	// IOPS of types that are asked for them.
	IOPS int64 `json:"iops,omitempty"`
	// Encrypted specifies whether the volume is encrypted; nil leaves it to the account.
	Encrypted *bool `json:"encrypted,omitempty"`
	// EncryptionKey is the ID or ARN of a KMS key; empty is AWS's own.
	EncryptionKey string `json:"encryptionKey,omitempty"`
}

// CloudInit says how user-data reaches the instance.
type CloudInit struct {
	// InsecureSkipSecretsManager hands user-data over by EC2 itself.
	InsecureSkipSecretsManager bool `json:"insecureSkipSecretsManager,omitempty"`
	// SecureSecretsBackend is secrets-manager or ssm-parameter-store.
	SecureSecretsBackend string `json:"secureSecretsBackend,omitempty"`
}

// SpotMarketOptions are about the spot market.
type SpotMarketOptions struct {
	// MaxPrice in dollars an hour; nil is that of an instance on demand.
	MaxPrice *string `json:"maxPrice,omitempty"`
}

// AWSMachineStatus is how the instance is.
type AWSMachineStatus struct {
	// Ready is true when the instance runs.
	Ready bool `json:"ready"`
	// Addresses of the instance.
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`
	// InstanceState in EC2's words, such as pending and running.
	InstanceState *string `json:"instanceState,omitempty"`
	// FailureReason says that the provider gave the machine up.
	FailureReason *string `json:"failureReason,omitempty"`
	// FailureMessage says why.
	FailureMessage *string `json:"failureMessage,omitempty"`
	// Conditions, in the form of Cluster API's contract v1beta1.
	Conditions []contract.Condition `json:"conditions,omitempty"`
}

// AWSMachine is one instance.
//
// +kubebuilder:object:root=true
type AWSMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the instance.
	Spec AWSMachineSpec `json:"spec,omitempty"`
	// Status of the instance.
	Status AWSMachineStatus `json:"status,omitempty"`
}

// AWSMachineList is a list of AWSMachines.
//
// +kubebuilder:object:root=true
type AWSMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSMachine `json:"items"`
}

// AWSMachineTemplateSpec holds what machines are made from.
type AWSMachineTemplateSpec struct {
	// Template of the machines.
	Template AWSMachineTemplateResource `json:"template"`
}

// AWSMachineTemplateResource is a machine to be.
type AWSMachineTemplateResource struct {
	// Spec of the machine.
	Spec AWSMachineSpec `json:"spec"`
}

// AWSMachineTemplateStatus is what the provider found out.
type AWSMachineTemplateStatus struct {
	// Capacity of a machine.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// AWSMachineTemplate is what the machines of a pool are made from.
//
// +kubebuilder:object:root=true
type AWSMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the template.
	Spec AWSMachineTemplateSpec `json:"spec,omitempty"`
	// Status of the template.
	Status AWSMachineTemplateStatus `json:"status,omitempty"`
}

// AWSMachineTemplateList is a list of AWSMachineTemplates.
//
// +kubebuilder:object:root=true
type AWSMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSMachineTemplate `json:"items"`
}
