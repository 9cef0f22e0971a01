// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
)

// HostedClusterSpec is what a hosted cluster should be.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.fips) && self.fips) == (has(oldSelf.fips) && oldSelf.fips)`,message=`fips is immutable: create a new HostedCluster to change it`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.secretEncryption) || has(self.secretEncryption)`,message=`secretEncryption must not be removed once it is set: what is stored could no longer be read`
// +kubebuilder:validation:XValidation:rule=`(!(has(self.operatorConfiguration) && has(self.operatorConfiguration.clusterNetworkOperator) && has(self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) && self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || (has(self.networking.networkType) && self.networking.networkType == 'Other')) || oldSelf.optMap(o, !(!(has(o.operatorConfiguration) && has(o.operatorConfiguration.clusterNetworkOperator) && has(o.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) && o.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || (has(o.networking.networkType) && o.networking.networkType == 'Other'))).orValue(false)`,message=`operatorConfiguration.clusterNetworkOperator.disableMultiNetwork needs networking.networkType Other`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!(has(self.operatorConfiguration) && has(self.operatorConfiguration.clusterNetworkOperator) && has(self.operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig)) || (has(self.networking.networkType) && self.networking.networkType == 'OVNKubernetes')) || oldSelf.optMap(o, !(!(has(o.operatorConfiguration) && has(o.operatorConfiguration.clusterNetworkOperator) && has(o.operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig)) || (has(o.networking.networkType) && o.networking.networkType == 'OVNKubernetes'))).orValue(false)`,message=`operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig needs networking.networkType OVNKubernetes`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`(!(has(self.configuration) && has(self.configuration.apiServer) && has(self.configuration.apiServer.servingCerts) && has(self.configuration.apiServer.servingCerts.namedCertificates)) || self.services.all(s, s.service != 'APIServer' || !has(s.servicePublishingStrategy.loadBalancer) || !has(s.servicePublishingStrategy.loadBalancer.hostname) || self.configuration.apiServer.servingCerts.namedCertificates.all(c, !has(c.names) || c.names.all(n, n != s.servicePublishingStrategy.loadBalancer.hostname)))) || (oldSelf.hasValue() && has(oldSelf.value().configuration) && has(oldSelf.value().configuration.apiServer) && has(oldSelf.value().configuration.apiServer.servingCerts) && has(oldSelf.value().configuration.apiServer.servingCerts.namedCertificates) && self.configuration.apiServer.servingCerts.namedCertificates == oldSelf.value().configuration.apiServer.servingCerts.namedCertificates)`,message=`configuration.apiServer.servingCerts.namedCertificates must not name the hostname that service APIServer is published under: its certificate is made by the control plane`,optionalOldSelf=true
type HostedClusterSpec struct {
	// release is the payload that the control plane and, unless a NodePool says otherwise, the nodes run.
	// Changing it upgrades the cluster.
	// +required
	Release Release `json:"release"`

	// controlPlaneRelease is the payload of those control-plane components that have no part in the data plane. It is
	// meant for fixes that need no node to roll. Empty means: the same as release.
	// +optional
	ControlPlaneRelease *Release `json:"controlPlaneRelease,omitempty"`

	// updateService is the URL of the update graph that lists available updates. Empty means the distribution's own.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isURL(self)`,message=`updateService must be an absolute URL such as https://api.openshift.com/api/upgrades_info/v1/graph`
	UpdateService configv1.URL `json:"updateService,omitempty"`

	// channel is the update channel that available updates are read from, e.g. "stable-4.20". Empty means that no
	// updates are looked up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Channel string `json:"channel,omitempty"`

	// clusterID is the UUID of the cluster, used in telemetry. It is generated when empty, and fixed once set.
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')`,message=`clusterID must be a UUID in lower case, such as fb10a66c-4c4c-4e4d-a5a0-0b2f9a2f4b5c`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`clusterID is immutable: create a new HostedCluster to change it`
	ClusterID string `json:"clusterID,omitempty"`

	// infraID is the short name that everything made for this cluster outside of Kubernetes carries. It is generated
	// when empty, and fixed once set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')`,message=`infraID must consist of lower case letters, digits and '-', beginning and ending with a letter or digit`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`infraID is immutable: create a new HostedCluster to change it`
	InfraID string `json:"infraID,omitempty"`

	// platform is where the nodes of the cluster live.
	// +required
	Platform PlatformSpec `json:"platform"`

	// kubeAPIServerDNSName is a further DNS name under which the API is reached. It gets a certificate and a
	// kubeconfig of its own (status.customKubeconfig).
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +kubebuilder:validation:XValidation:rule=`size(self) == 0 || self.matches(r'^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$')`,message=`kubeAPIServerDNSName must be a domain name such as api.example.com`
	KubeAPIServerDNSName string `json:"kubeAPIServerDNSName,omitempty"`

	// controllerAvailabilityPolicy specifies whether control-plane components run once or three times.
	// +kubebuilder:default:="HighlyAvailable"
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`controllerAvailabilityPolicy is immutable: create a new HostedCluster to change it`
	ControllerAvailabilityPolicy AvailabilityPolicy `json:"controllerAvailabilityPolicy,omitempty"`

	// infrastructureAvailabilityPolicy specifies whether the components that run on the nodes of the cluster, such as its
	// ingress, run once or several times.
	// +kubebuilder:default:="SingleReplica"
	// +optional
	InfrastructureAvailabilityPolicy AvailabilityPolicy `json:"infrastructureAvailabilityPolicy,omitempty"`

	// dns is the domain of the cluster.
	// +optional
	DNS DNSSpec `json:"dns,omitempty"`

	// networking is the cluster's own networks and those it stands in.
	// +kubebuilder:default={networkType: "OVNKubernetes", clusterNetwork: {{cidr: "10.132.0.0/14"}}, serviceNetwork: {{cidr: "172.31.0.0/16"}}}
	// +required
	Networking ClusterNetworking `json:"networking"`

	// autoscaling tunes the cluster autoscaler, which runs when a NodePool has autoScaling.
	// +optional
	Autoscaling ClusterAutoscaling `json:"autoscaling,omitempty"`

	// autoNode lets a provisioner make nodes without a NodePool.
	// +optional
	AutoNode *AutoNode `json:"autoNode,omitempty"`

	// etcd is where the cluster keeps its state.
	// +kubebuilder:default={managementType: "Managed", managed: {storage: {type: "PersistentVolume", persistentVolume: {size: "8Gi"}}}}
	// +required
	Etcd EtcdSpec `json:"etcd"`

	// services says how each control-plane service is reached from the nodes and by people. APIServer, OAuthServer,
	// Konnectivity and Ignition must be listed.
	// +kubebuilder:validation:MaxItems=6
	// +required
	// +kubebuilder:validation:XValidation:rule=`size(self) == size(oldSelf) && self.all(s, oldSelf.exists(was, was.service == s.service && (was.servicePublishingStrategy.type == s.servicePublishingStrategy.type || (s.service == 'APIServer' && [was, s].all(x, x.servicePublishingStrategy.type in ['NodePort', 'LoadBalancer']))) && has(s.servicePublishingStrategy.route) == has(was.servicePublishingStrategy.route) && (!has(s.servicePublishingStrategy.route) || s.servicePublishingStrategy.route == was.servicePublishingStrategy.route)))`,message=`services cannot be published in another way: only addresses of type NodePort, the hostname of a load balancer, and type NodePort or LoadBalancer of APIServer can change`
	// +kubebuilder:validation:XValidation:rule=`self.all(s, !has(s.servicePublishingStrategy.nodePort) || !oldSelf.exists(was, was.service == s.service) || oldSelf.exists(was, was.service == s.service && (has(s.servicePublishingStrategy.nodePort.port) ? s.servicePublishingStrategy.nodePort.port : 0) == (has(was.servicePublishingStrategy.nodePort) && has(was.servicePublishingStrategy.nodePort.port) ? was.servicePublishingStrategy.nodePort.port : 0)))`,message=`nodePort.port cannot change while the cluster lives: machines hold it; leave it as it is, and out where it was not given`
	// +kubebuilder:validation:XValidation:rule=`size(self) >= 4 && ['APIServer', 'OAuthServer', 'Konnectivity', 'Ignition'].all(n, self.exists(s, s.service == n))`,message=`services must list at least APIServer, OAuthServer, Konnectivity and Ignition`
	// +kubebuilder:validation:XValidation:rule=`self.all(s, self.exists_one(other, other.service == s.service))`,message=`services must not list a service twice`
	// +kubebuilder:validation:XValidation:rule=`self.all(s, !has(s.servicePublishingStrategy.nodePort) || !has(s.servicePublishingStrategy.nodePort.port) || s.servicePublishingStrategy.nodePort.port == 0 || self.exists_one(other, has(other.servicePublishingStrategy.nodePort) && has(other.servicePublishingStrategy.nodePort.port) && other.servicePublishingStrategy.nodePort.port == s.servicePublishingStrategy.nodePort.port))`,message=`two services must not have the same nodePort.port`
	Services []ServicePublishingStrategyMapping `json:"services"`

	// pullSecret names a Secret with the key ".dockerconfigjson": the credentials for the registries of the payload.
	// +required
	PullSecret corev1.LocalObjectReference `json:"pullSecret"`

	// sshKey names a Secret with the key "id_rsa.pub": the public key that may log in to the nodes. Empty means none.
	// +optional
	SSHKey corev1.LocalObjectReference `json:"sshKey,omitempty"`

	// issuerURL is the issuer of the cluster's service account tokens.
	// +kubebuilder:default:="https://kubernetes.default.svc"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isURL(self)`,message=`issuerURL must be an absolute URL such as https://kubernetes.default.svc`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`issuerURL is immutable: create a new HostedCluster to change it`
	IssuerURL string `json:"issuerURL,omitempty"`

	// serviceAccountSigningKey names a Secret with the key "key": the private key that signs service account tokens.
	// One is generated when empty. It needs issuerURL.
	// +optional
	ServiceAccountSigningKey *corev1.LocalObjectReference `json:"serviceAccountSigningKey,omitempty"`

	// configuration is the global configuration of the guest cluster: each field is the spec of the like-named kind of
	// config.openshift.io.
	// +optional
	Configuration *ClusterConfiguration `json:"configuration,omitempty"`

	// operatorConfiguration configures operators of the guest cluster.
	// +optional
	OperatorConfiguration *OperatorConfiguration `json:"operatorConfiguration,omitempty"`

	// addons configures what a cluster with a Kubernetes release brings besides Kubernetes.
	// +optional
	Addons *AddonsSpec `json:"addons,omitempty"`

	// auditWebhook names a Secret with the key "webhook-kubeconfig": where audit events are sent. Empty means nowhere.
	// +optional
	AuditWebhook *corev1.LocalObjectReference `json:"auditWebhook,omitempty"`

	// imageContentSources lists registries that mirror others, for clusters without a way to the internet.
	// +kubebuilder:validation:MaxItems=255
	// +optional
	ImageContentSources []ImageContentSource `json:"imageContentSources,omitempty"`

	// additionalTrustBundle names a ConfigMap with the key "ca-bundle.crt": further CAs (PEM) that the control plane and
	// the nodes trust.
	// +optional
	AdditionalTrustBundle *corev1.LocalObjectReference `json:"additionalTrustBundle,omitempty"`

	// secretEncryption encrypts Secrets and other sensitive kinds in etcd. It cannot be removed once set.
	// +optional
	SecretEncryption *SecretEncryptionSpec `json:"secretEncryption,omitempty"`

	// fips makes the nodes run in FIPS mode.
	// +optional
	FIPS bool `json:"fips,omitempty"`

	// pausedUntil stops reconciliation: "true" until changed, "false" not at all, or until an RFC 3339 time, e.g.
	// "2026-12-24T18:00:00Z".
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=35
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self in ['true', 'True', 'TRUE', 'false', 'False', 'FALSE'] || self.matches(r'^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$')`,message=`pausedUntil must be true, false or an RFC 3339 time such as 2026-01-31T12:00:00Z`
	PausedUntil *string `json:"pausedUntil,omitempty"`

	// olmCatalogPlacement specifies whether the default operator catalogs run on the management cluster or in the guest.
	// +kubebuilder:default=management
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`olmCatalogPlacement is immutable: create a new HostedCluster to change it`
	OLMCatalogPlacement OLMCatalogPlacement `json:"olmCatalogPlacement,omitempty"`

	// nodeSelector chooses the nodes of the management cluster that control-plane pods may run on.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`size(self) <= 20`,message=`nodeSelector must have at most 20 entries`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are added to control-plane pods.
	// +kubebuilder:validation:MaxItems=25
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// labels are added to control-plane pods.
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// monitoring says which metrics of the control plane are kept and forwarded.
	// +optional
	Monitoring MonitoringSpec `json:"monitoring,omitzero"`

	// capabilities turns optional parts of an OpenShift cluster on and off.
	// +kubebuilder:default:={}
	// +optional
	// +kubebuilder:validation:XValidation:rule=`(has(self.enabled) ? self.enabled : []) == (has(oldSelf.enabled) ? oldSelf.enabled : []) && (has(self.disabled) ? self.disabled : []) == (has(oldSelf.disabled) ? oldSelf.disabled : [])`,message=`capabilities is immutable: create a new HostedCluster to change it`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
}
