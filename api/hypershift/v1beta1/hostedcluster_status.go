// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostedClusterStatus is what a hosted cluster was last seen to be.
type HostedClusterStatus struct {
	// version is the version of the cluster, nodes and all.
	// +optional
	Version *ClusterVersionStatus `json:"version,omitempty"`

	// controlPlaneVersion is the version of the control plane.
	// +optional
	ControlPlaneVersion ControlPlaneVersionStatus `json:"controlPlaneVersion,omitzero"`

	// kubeconfig names the Secret with the admin kubeconfig, key "kubeconfig".
	// +optional
	KubeConfig *corev1.LocalObjectReference `json:"kubeconfig,omitempty"`

	// customKubeconfig names the Secret with the admin kubeconfig for spec.kubeAPIServerDNSName, key "kubeconfig".
	// +optional
	CustomKubeconfig *corev1.LocalObjectReference `json:"customKubeconfig,omitempty"`

	// kubeadminPassword names the Secret with the password of the first user, key "password". Unset when there is none.
	// +optional
	KubeadminPassword *corev1.LocalObjectReference `json:"kubeadminPassword,omitempty"`

	// ignitionEndpoint is the host, and port if not 443, where new nodes get their configuration.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!self.contains('://')`,message=`ignitionEndpoint must be a host, with or without a port, and no URL`
	IgnitionEndpoint string `json:"ignitionEndpoint,omitempty"`

	// controlPlaneEndpoint is where the API is reached.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty"`

	// oauthCallbackURLTemplate is the URL that identity providers must send the user back to;
	// "[identity-provider-name]" stands for the provider's name.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	OAuthCallbackURLTemplate string `json:"oauthCallbackURLTemplate,omitempty"`

	// conditions tell how the cluster is.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// payloadArch is the CPU architecture of the release payload.
	// +optional
	PayloadArch PayloadArchType `json:"payloadArch,omitempty"`

	// platform is what the platform tells of the cluster.
	// +optional
	Platform *PlatformStatus `json:"platform,omitempty"`

	// autoNode counts the nodes that a provisioner made.
	// +optional
	AutoNode AutoNodeStatus `json:"autoNode,omitzero"`

	// configuration is what the guest cluster tells of its configuration.
	// +optional
	Configuration *ConfigurationStatus `json:"configuration,omitempty"`

	// secretEncryption tells which key encrypts Secrets.
	// +optional
	SecretEncryption SecretEncryptionStatus `json:"secretEncryption,omitzero"`
}

// APIEndpoint is where an API is reached.
type APIEndpoint struct {
	// host is a DNS name or IP address.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Host string `json:"host"`

	// port is the TCP port.
	// +required
	Port int32 `json:"port"`
}

// ClusterVersionStatus is the version of a cluster: what it moves to, what it had, and what it could move to.
type ClusterVersionStatus struct {
	// desired is the version that the cluster is moving to.
	// +required
	Desired configv1.Release `json:"desired"`

	// history is the versions that the cluster had, newest first.
	// +optional
	History []configv1.UpdateHistory `json:"history,omitempty"`

	// observedGeneration is the generation of the guest's ClusterVersion that this tells of.
	// +required
	ObservedGeneration int64 `json:"observedGeneration"`

	// availableUpdates are the versions that the cluster may move to. Null when they could not be looked up.
	// +kubebuilder:validation:MaxItems=100
	// +nullable
	// +required
	AvailableUpdates []configv1.Release `json:"availableUpdates"`

	// conditionalUpdates are the versions that the cluster may move to at a known risk.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	ConditionalUpdates []configv1.ConditionalUpdate `json:"conditionalUpdates,omitempty"`
}

// PlatformStatus is what the platform tells of a cluster.
type PlatformStatus struct {
	// aws is what AWS tells.
	// +optional
	AWS *AWSPlatformStatus `json:"aws,omitempty"`
}

// AutoNodeStatus counts the nodes that a provisioner made.
//
// +kubebuilder:validation:MinProperties=1
type AutoNodeStatus struct {
	// nodeCount is the number of nodes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NodeCount *int32 `json:"nodeCount,omitempty"`

	// nodeClaimCount is the number of nodes that were asked for.
	// +kubebuilder:validation:Minimum=0
	// +optional
	NodeClaimCount *int32 `json:"nodeClaimCount,omitempty"`

	// vcpus is the number of virtual CPUs of the nodes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	VCPUs *int32 `json:"vcpus,omitempty"`
}
