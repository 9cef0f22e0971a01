// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AWSClusterSpec says where machines are made.
type AWSClusterSpec struct {
	// Network is the one that machines are in.
	Network NetworkSpec `json:"network,omitempty"`
	// Region of the machines.
	Region string `json:"region,omitempty"`
	// ControlPlaneEndpoint is where the API server is reached.
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint"`
	// AdditionalTags are put on what the provider makes.
	AdditionalTags map[string]string `json:"additionalTags,omitempty"`
}

// NetworkSpec is a network that exists.
type NetworkSpec struct {
	// VPC of the cluster.
	VPC VPCSpec `json:"vpc,omitempty"`
	// Subnets are those that the provider looks machines' subnets up in before it gives them public addresses.
	Subnets []SubnetSpec `json:"subnets,omitempty"`
}

// SubnetSpec is a subnet that exists.
type SubnetSpec struct {
	// ID of the subnet.
	ID string `json:"id"`
	// IsPublic says that machines in it can be reached from outside.
	IsPublic bool `json:"isPublic,omitempty"`
}

// VPCSpec names a VPC.
type VPCSpec struct {
	// ID of the VPC.
	ID string `json:"id,omitempty"`
}

// APIEndpoint is an address and a port.
type APIEndpoint struct {
	// Host is a name or an address.
	Host string `json:"host"`
	// Port is a TCP port.
	Port int32 `json:"port"`
}

// AWSClusterStatus is what is there.
type AWSClusterStatus struct {
	// Ready is true when machines can be made.
	Ready bool `json:"ready"`
}

// AWSCluster is a hosted cluster as the provider of AWS sees it.
//
// +kubebuilder:object:root=true
type AWSCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the cluster.
	Spec AWSClusterSpec `json:"spec,omitempty"`
	// Status of the cluster.
	Status AWSClusterStatus `json:"status,omitempty"`
}

// AWSClusterList is a list of AWSClusters.
//
// +kubebuilder:object:root=true
type AWSClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSCluster `json:"items"`
}
