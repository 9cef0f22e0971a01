// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostedControlPlane is what hypershift-operator asks a control-plane-operator for: the control plane of one
// HostedCluster. It lives in the cluster's own namespace and is not meant to be written by people.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostedcontrolplanes,shortName=hcp;hcps,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1beta1"}
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type HostedControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the control plane should be.
	Spec HostedControlPlaneSpec `json:"spec,omitempty"`
	// status is what the control plane was last seen to be.
	Status HostedControlPlaneStatus `json:"status,omitempty"`
}

// HostedControlPlaneSpec is what a control plane should be. Fields that HostedClusterSpec has too mean the same here.
//
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.secretEncryption) || has(self.secretEncryption)`,message=`secretEncryption must not be removed once it is set: what is stored could no longer be read`
// +kubebuilder:validation:XValidation:rule=`(!(has(self.operatorConfiguration) && has(self.operatorConfiguration.clusterNetworkOperator) && has(self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) && self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || (has(self.networking) && has(self.networking.networkType) && self.networking.networkType == 'Other')) || oldSelf.optMap(o, !(!(has(o.operatorConfiguration) && has(o.operatorConfiguration.clusterNetworkOperator) && has(o.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) && o.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || (has(o.networking) && has(o.networking.networkType) && o.networking.networkType == 'Other'))).orValue(false)`,message=`operatorConfiguration.clusterNetworkOperator.disableMultiNetwork needs networking.networkType Other`,optionalOldSelf=true
type HostedControlPlaneSpec struct {
	// releaseImage is the pull spec of the release payload.
	// +kubebuilder:validation:MaxLength=255
	// +required
	ReleaseImage string `json:"releaseImage"`

	// controlPlaneReleaseImage is the payload of components that have no part in the data plane. Unset means releaseImage.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ControlPlaneReleaseImage *string `json:"controlPlaneReleaseImage,omitempty"`

	// updateService is the URL of the update graph.
	// +optional
	UpdateService configv1.URL `json:"updateService,omitempty"`

	// channel is the update channel.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Channel string `json:"channel,omitempty"`

	// pullSecret names a Secret with the key ".dockerconfigjson".
	// +required
	PullSecret corev1.LocalObjectReference `json:"pullSecret"`

	// issuerURL is the issuer of service account tokens.
	// +kubebuilder:validation:MaxLength=255
	// +required
	IssuerURL string `json:"issuerURL"`

	// networking is the cluster's networks.
	// +optional
	Networking ClusterNetworking `json:"networking,omitempty"`

	// sshKey names a Secret with the key "id_rsa.pub". Its name may be empty.
	// +required
	SSHKey corev1.LocalObjectReference `json:"sshKey"`

	// clusterID is the UUID of the cluster.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// infraID is the short name of the cluster outside of Kubernetes.
	// +kubebuilder:validation:MaxLength=255
	// +required
	InfraID string `json:"infraID"`

	// platform is where the nodes live.
	// +required
	Platform PlatformSpec `json:"platform"`

	// dns is the domain of the cluster.
	// +required
	DNS DNSSpec `json:"dns"`

	// serviceAccountSigningKey names a Secret with the key "key".
	// +optional
	ServiceAccountSigningKey *corev1.LocalObjectReference `json:"serviceAccountSigningKey,omitempty"`

	// controllerAvailabilityPolicy says how often control-plane components run.
	// +kubebuilder:default:="HighlyAvailable"
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`controllerAvailabilityPolicy is immutable: create a new HostedCluster to change it`
	ControllerAvailabilityPolicy AvailabilityPolicy `json:"controllerAvailabilityPolicy,omitempty"`

	// infrastructureAvailabilityPolicy says how often components on the nodes run.
	// +kubebuilder:default:="SingleReplica"
	// +optional
	InfrastructureAvailabilityPolicy AvailabilityPolicy `json:"infrastructureAvailabilityPolicy,omitempty"`

	// fips makes the nodes run in FIPS mode.
	// +optional
	FIPS bool `json:"fips,omitempty"`

	// kubeconfig names the Secret and key where the admin kubeconfig is to be written. Unset means "admin-kubeconfig",
	// key "kubeconfig".
	// +optional
	KubeConfig *KubeconfigSecretRef `json:"kubeconfig,omitempty"`

	// kubeAPIServerDNSName is a further DNS name of the API.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +kubebuilder:validation:XValidation:rule=`size(self) == 0 || self.matches(r'^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$')`,message=`kubeAPIServerDNSName must be a domain name such as api.example.com`
	KubeAPIServerDNSName string `json:"kubeAPIServerDNSName,omitempty"`

	// services says how each service is published.
	// +kubebuilder:validation:MaxItems=6
	// +required
	// +kubebuilder:validation:XValidation:rule=`size(self) >= 4`,message=`services must list at least APIServer, OAuthServer, Konnectivity and Ignition`
	Services []ServicePublishingStrategyMapping `json:"services"`

	// auditWebhook names a Secret with the key "webhook-kubeconfig".
	// +optional
	AuditWebhook *corev1.LocalObjectReference `json:"auditWebhook,omitempty"`

	// etcd is where the cluster keeps its state.
	// +required
	Etcd EtcdSpec `json:"etcd"`

	// configuration is the global configuration of the guest cluster.
	// +optional
	Configuration *ClusterConfiguration `json:"configuration,omitempty"`

	// operatorConfiguration configures operators of the guest cluster.
	// +optional
	OperatorConfiguration *OperatorConfiguration `json:"operatorConfiguration,omitempty"`

	// addons configures what a cluster with a Kubernetes release brings besides Kubernetes.
	// +optional
	Addons *AddonsSpec `json:"addons,omitempty"`

	// imageContentSources lists registries that mirror others.
	// +kubebuilder:validation:MaxItems=255
	// +optional
	ImageContentSources []ImageContentSource `json:"imageContentSources,omitempty"`

	// additionalTrustBundle names a ConfigMap with the key "ca-bundle.crt".
	// +optional
	AdditionalTrustBundle *corev1.LocalObjectReference `json:"additionalTrustBundle,omitempty"`

	// secretEncryption encrypts Secrets in etcd.
	// +optional
	SecretEncryption *SecretEncryptionSpec `json:"secretEncryption,omitempty"`

	// pausedUntil stops reconciliation.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	PausedUntil *string `json:"pausedUntil,omitempty"`

	// olmCatalogPlacement says where the default operator catalogs run.
	// +kubebuilder:default=management
	// +optional
	OLMCatalogPlacement OLMCatalogPlacement `json:"olmCatalogPlacement,omitempty"`

	// autoscaling tunes the cluster autoscaler.
	// +optional
	Autoscaling ClusterAutoscaling `json:"autoscaling,omitempty"`

	// autoNode lets a provisioner make nodes.
	// +optional
	AutoNode *AutoNode `json:"autoNode,omitempty"`

	// nodeSelector chooses the nodes of the management cluster for control-plane pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are added to control-plane pods.
	// +kubebuilder:validation:MaxItems=25
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// labels are added to control-plane pods.
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// monitoring says which metrics are kept and forwarded.
	// +optional
	Monitoring MonitoringSpec `json:"monitoring,omitzero"`

	// capabilities turns optional parts of an OpenShift cluster on and off.
	// +kubebuilder:default:={}
	// +optional
	// +kubebuilder:validation:XValidation:rule=`(has(self.enabled) ? self.enabled : []) == (has(oldSelf.enabled) ? oldSelf.enabled : []) && (has(self.disabled) ? self.disabled : []) == (has(oldSelf.disabled) ? oldSelf.disabled : [])`,message=`capabilities is immutable: create a new HostedCluster to change it`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
}

// KubeconfigSecretRef names a Secret and the key in it that holds a kubeconfig.
type KubeconfigSecretRef struct {
	// name is the name of the Secret.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Name string `json:"name"`

	// key is the key in the Secret.
	// +kubebuilder:validation:MaxLength=255
	// +required
	Key string `json:"key"`
}

// HostedControlPlaneList is a list of HostedControlPlanes.
//
// +kubebuilder:object:root=true
type HostedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostedControlPlane `json:"items"`
}
