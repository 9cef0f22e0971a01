// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

const (
	// KMSPluginSocket is the socket that a plugin has to listen at, in its own container.
	KMSPluginSocket = "/var/run/kms/kms.sock"
	// KMSPluginCredentials is the directory where a plugin finds the keys of its credentials Secret as files.
	KMSPluginCredentials = "/etc/kms"
)

// KMSPluginSpec is a plugin of the KMS v2 protocol, which runs beside each API server and listens at /var/run/kms/kms.sock.
type KMSPluginSpec struct {
	// name is written before all that the plugin encrypts. Another name is another key: everything is moved over to it, and the previous
	// plugin runs until that is done. A plugin of the same name must decrypt what it encrypted before, also when its image or args change.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name"`

	// image is the plugin's, with its registry, by tag or digest. The cluster's pull secret is used for it. It must come from a
	// registry that the administrator allows.
	// +kubebuilder:validation:Pattern=`^[^/\s]+/\S+$`
	// +kubebuilder:validation:MaxLength=512
	// +required
	Image string `json:"image"`

	// args are for the entrypoint of the image. They say, in the plugin's own words, that it listens at /var/run/kms/kms.sock, and which key
	// it uses.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// credentials names a Secret beside the HostedCluster whose keys are files below /etc/kms for the plugin only.
	// +optional
	Credentials *corev1.LocalObjectReference `json:"credentials,omitempty"`
}
