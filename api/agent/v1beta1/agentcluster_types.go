// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/api/util/contract"
)

// AgentClusterSpec says where the control plane and the configuration of nodes are.
type AgentClusterSpec struct {
	// ignitionEndpoint is where hosts fetch their configuration.
	//
	// +optional
	IgnitionEndpoint *IgnitionEndpoint `json:"ignitionEndpoint,omitempty"`

	// controlPlaneEndpoint is where the API server is reached.
	//
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint"`
}

// APIEndpoint is an address and a port.
type APIEndpoint struct {
	// host is a name or an address.
	//
	// +required
	Host string `json:"host"`

	// port is a TCP port.
	//
	// +required
	Port int32 `json:"port"`
}

// IgnitionEndpoint is a server of configurations.
type IgnitionEndpoint struct {
	// url of the configuration.
	//
	// +optional
	URL string `json:"url,omitempty"`

	// caCertificateReference is the Secret with the CA that the server is known by.
	//
	// +optional
	CACertificateReference *CACertificateReference `json:"caCertificateReference,omitempty"`
}

// CACertificateReference names a Secret.
type CACertificateReference struct {
	// namespace of the Secret.
	//
	// +required
	Namespace string `json:"namespace"`

	// name of the Secret.
	//
	// +required
	Name string `json:"name"`
}

// AgentClusterStatus is what the provider has made.
type AgentClusterStatus struct {
	// ready is true when machines can be made.
	//
	// +optional
	Ready bool `json:"ready"`

	// clusterDeploymentReference is the ClusterDeployment that the assisted service installs hosts for.
	//
	// +optional
	ClusterDeploymentRef ClusterDeploymentReference `json:"clusterDeploymentReference,omitempty"`

	// conditions of the cluster, in the form of Cluster API's contract v1beta1.
	//
	// +optional
	Conditions []contract.Condition `json:"conditions,omitempty"`
}

// ClusterDeploymentReference names a ClusterDeployment.
type ClusterDeploymentReference struct {
	// name of the ClusterDeployment.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the ClusterDeployment.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// AgentCluster is a hosted cluster as the provider of agents sees it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=agentclusters,scope=Namespaced,categories=cluster-api,shortName=agentc
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1beta1"}
type AgentCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the cluster.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec AgentClusterSpec `json:"spec,omitempty"`

	// status of the cluster.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status AgentClusterStatus `json:"status,omitempty"`
}

// AgentClusterList is a list of AgentClusters.
//
// +kubebuilder:object:root=true
type AgentClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentCluster `json:"items"`
}
