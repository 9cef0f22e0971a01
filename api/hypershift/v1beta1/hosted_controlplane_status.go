// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostedControlPlaneStatus is what a control plane was last seen to be.
type HostedControlPlaneStatus struct {
	// ready says that the API serves. Cluster API reads it.
	// +kubebuilder:default=false
	// +required
	Ready bool `json:"ready"`

	// initialized says that the API has served once. Cluster API reads it.
	// +kubebuilder:default=false
	// +required
	Initialized bool `json:"initialized"`

	// externalManagedControlPlane says that the control plane has no Machines. Cluster API reads it.
	// +kubebuilder:default=true
	// +optional
	ExternalManagedControlPlane *bool `json:"externalManagedControlPlane,omitempty"`

	// controlPlaneEndpoint is where the API is reached.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty"`

	// servedAddresses are those that the control plane of a Kubernetes payload answers to, the one that nodes are to go by first. There are
	// several after spec.services has changed, until no node uses the previous ones.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	ServedAddresses []ServedAddress `json:"servedAddresses,omitempty"`

	// addressUse tells which nodes go by the first of servedAddresses. It is there since spec.services has changed for the first time.
	// +optional
	AddressUse *AddressUse `json:"addressUse,omitempty"`

	// tunnelAddresses are the addresses, as host:port, at which the nodes of a Kubernetes payload open the tunnel through
	// which the API server reaches pods and Services. Empty if spec.services publishes Konnectivity in a way that the
	// management cluster does not have, or until the address is known.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=300
	// +listType=atomic
	// +optional
	TunnelAddresses []string `json:"tunnelAddresses,omitempty"`

	// oauthCallbackURLTemplate is the URL that identity providers must send the user back to.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	OAuthCallbackURLTemplate string `json:"oauthCallbackURLTemplate,omitempty"`

	// versionStatus is the version of the cluster, nodes and all.
	// +optional
	VersionStatus *ClusterVersionStatus `json:"versionStatus,omitempty"`

	// controlPlaneVersion is the version of the control plane.
	// +optional
	ControlPlaneVersion ControlPlaneVersionStatus `json:"controlPlaneVersion,omitzero"`

	// version is the version that the control plane runs. versionStatus tells more; Cluster API reads this one.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Version string `json:"version,omitempty"`

	// releaseImage is the payload that the control plane runs. versionStatus tells more.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ReleaseImage string `json:"releaseImage,omitempty"`

	// lastReleaseImageTransitionTime is when releaseImage last changed. versionStatus tells more.
	// +optional
	LastReleaseImageTransitionTime *metav1.Time `json:"lastReleaseImageTransitionTime,omitempty"`

	// kubeConfig names the Secret with the admin kubeconfig.
	// +optional
	KubeConfig *KubeconfigSecretRef `json:"kubeConfig,omitempty"`

	// customKubeconfig names the Secret with the admin kubeconfig for spec.kubeAPIServerDNSName.
	// +optional
	CustomKubeconfig *KubeconfigSecretRef `json:"customKubeconfig,omitempty"`

	// kubeadminPassword names the Secret with the password of the first user.
	// +optional
	KubeadminPassword *corev1.LocalObjectReference `json:"kubeadminPassword,omitempty"`

	// conditions tell how the control plane is.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// nodeCount is the number of nodes of the guest cluster.
	// +optional
	NodeCount *int `json:"nodeCount,omitempty"`

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

// ServedAddress is an address by which machines and people reach a control plane.
type ServedAddress struct {
	// type is the way in which the API server is published there.
	// +required
	Type PublishingStrategyType `json:"type"`

	// host is the DNS name or IP address of the API server.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Host string `json:"host"`

	// port is that of the API server.
	// +required
	Port int32 `json:"port"`

	// ignitionHost is the DNS name or IP address of the ignition-server. Empty where it is not published.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	IgnitionHost string `json:"ignitionHost,omitempty"`

	// since is when it became what it is: one that nodes are to go by, one that kubeconfigs name, or a previous one.
	// +required
	Since metav1.Time `json:"since"`
}

// AddressUse tells which nodes go by an address.
type AddressUse struct {
	// since is that of the address.
	// +required
	Since metav1.Time `json:"since"`

	// arrived counts the nodes that go by it.
	// +required
	Arrived int32 `json:"arrived"`

	// remaining counts what does not go by it yet: nodes, machines that are being installed, and workloads on nodes.
	// +required
	Remaining int32 `json:"remaining"`

	// message says what these are.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
}
