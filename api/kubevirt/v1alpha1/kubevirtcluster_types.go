// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/api/util/contract"
)

// KubevirtClusterSpec says where the control plane is, and where virtual machines are made.
type KubevirtClusterSpec struct {
	// controlPlaneEndpoint is where the API server is reached.
	//
	// +optional
	ControlPlaneEndpoint *APIEndpoint `json:"controlPlaneEndpoint,omitempty"`

	// infraClusterSecretRef is the Secret with the kubeconfig of the cluster that runs the virtual machines. Absent means this one.
	//
	// +optional
	InfraClusterSecretRef *corev1.ObjectReference `json:"infraClusterSecretRef,omitempty"`
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

// KubevirtClusterStatus says that machines can be made.
type KubevirtClusterStatus struct {
	// ready is true when machines can be made.
	//
	// +optional
	Ready bool `json:"ready"`

	// conditions of the cluster, in the form of Cluster API's contract v1beta1.
	//
	// +optional
	Conditions []contract.Condition `json:"conditions,omitempty"`
}

// KubevirtCluster is a hosted cluster as the provider sees it. The provider does not change an externally managed one, nor its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=kubevirtclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1"}
type KubevirtCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the cluster.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Spec KubevirtClusterSpec `json:"spec,omitempty"`

	// status of the cluster.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status KubevirtClusterStatus `json:"status,omitempty"`
}

// KubevirtClusterList is a list of KubevirtClusters.
//
// +kubebuilder:object:root=true
type KubevirtClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubevirtCluster `json:"items"`
}
