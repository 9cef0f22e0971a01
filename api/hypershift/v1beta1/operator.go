// SPDX-License-Identifier: Apache-2.0

package v1beta1

import operatorv1 "github.com/openshift/api/operator/v1"

// OperatorConfiguration configures operators of the guest cluster.
//
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.clusterNetworkOperator) || !has(oldSelf.clusterNetworkOperator.ovnKubernetesConfig) || (has(self.clusterNetworkOperator) && has(self.clusterNetworkOperator.ovnKubernetesConfig))`,message=`operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig must not be removed once it is set`
type OperatorConfiguration struct {
	// clusterNetworkOperator configures the network plugin.
	// +optional
	ClusterNetworkOperator *ClusterNetworkOperatorSpec `json:"clusterNetworkOperator,omitempty"`

	// ingressOperator configures the default ingress.
	// +optional
	IngressOperator *IngressOperatorSpec `json:"ingressOperator,omitempty"`
}

// ClusterNetworkOperatorSpec configures the network plugin.
type ClusterNetworkOperatorSpec struct {
	// disableMultiNetwork leaves out Multus, so that pods have one network only. It needs networkType Other and cannot
	// be changed.
	// +kubebuilder:default=false
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`operatorConfiguration.clusterNetworkOperator.disableMultiNetwork is immutable: create a new HostedCluster to change it`
	DisableMultiNetwork *bool `json:"disableMultiNetwork,omitempty"`

	// ovnKubernetesConfig configures OVN-Kubernetes. It needs networkType OVNKubernetes.
	// +optional
	OVNKubernetesConfig *OVNKubernetesConfig `json:"ovnKubernetesConfig,omitempty"`
}

// OVNKubernetesConfig configures OVN-Kubernetes.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.ipv6) || has(self.ipv6)`,message=`ovnKubernetesConfig.ipv6 must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.mtu) || has(self.mtu)`,message=`ovnKubernetesConfig.mtu must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.v4InternalSubnet) || has(self.v4InternalSubnet)`,message=`ovnKubernetesConfig.v4InternalSubnet must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.v6InternalSubnet) || has(self.v6InternalSubnet)`,message=`ovnKubernetesConfig.v6InternalSubnet must not be removed once it is set`
type OVNKubernetesConfig struct {
	// ipv4 is the IPv4 networks that OVN-Kubernetes uses for itself.
	// +optional
	IPv4 *OVNIPv4Config `json:"ipv4,omitempty"`

	// ipv6 is the IPv6 networks that OVN-Kubernetes uses for itself.
	// +optional
	IPv6 *OVNIPv6Config `json:"ipv6,omitempty"`

	// mtu is the MTU of the pod network in bytes. Zero means what fits the nodes' network. It cannot be changed.
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=9216
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`ovnKubernetesConfig.mtu is immutable: create a new HostedCluster to change it`
	MTU int32 `json:"mtu,omitempty"`

	// v4InternalSubnet is an IPv4 network that OVN-Kubernetes uses for itself, e.g. "100.64.0.0/16". It cannot be changed.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self).prefixLength() <= 30 && !self.startsWith('0')`,message=`ovnKubernetesConfig.v4InternalSubnet must be an IPv4 network with a prefix of at most 30, such as 100.64.0.0/16`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`ovnKubernetesConfig.v4InternalSubnet is immutable: create a new HostedCluster to change it`
	V4InternalSubnet string `json:"v4InternalSubnet,omitempty"`

	// v6InternalSubnet is an IPv6 network that OVN-Kubernetes uses for itself, e.g. "fd98::/64". It cannot be changed.
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=48
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self) && cidr(self).ip().family() == 6 && cidr(self).prefixLength() <= 125`,message=`ovnKubernetesConfig.v6InternalSubnet must be an IPv6 network with a prefix of at most 125, such as fd98::/64`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`ovnKubernetesConfig.v6InternalSubnet is immutable: create a new HostedCluster to change it`
	V6InternalSubnet string `json:"v6InternalSubnet,omitempty"`
}

// OVNIPv4Config is the IPv4 networks that OVN-Kubernetes uses for itself. They must overlap no network of the cluster.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule=`!has(self.internalTransitSwitchSubnet) || !has(self.internalJoinSubnet) || self.internalTransitSwitchSubnet != self.internalJoinSubnet`,message=`ovnKubernetesConfig.ipv4.internalTransitSwitchSubnet and internalJoinSubnet must differ`
type OVNIPv4Config struct {
	// internalTransitSwitchSubnet joins the nodes, e.g. "100.88.0.0/16".
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self).prefixLength() <= 30 && !self.startsWith('0')`,message=`ovnKubernetesConfig.ipv4.internalTransitSwitchSubnet must be an IPv4 network with a prefix of at most 30, such as 100.88.0.0/16`
	InternalTransitSwitchSubnet string `json:"internalTransitSwitchSubnet,omitempty"`

	// internalJoinSubnet joins the routers of a node, e.g. "100.64.0.0/16".
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self).prefixLength() <= 30 && !self.startsWith('0')`,message=`ovnKubernetesConfig.ipv4.internalJoinSubnet must be an IPv4 network with a prefix of at most 30, such as 100.64.0.0/16`
	InternalJoinSubnet string `json:"internalJoinSubnet,omitempty"`
}

// OVNIPv6Config is the IPv6 networks that OVN-Kubernetes uses for itself. They cannot be changed.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule=`!has(self.internalTransitSwitchSubnet) || !has(self.internalJoinSubnet) || self.internalTransitSwitchSubnet != self.internalJoinSubnet`,message=`ovnKubernetesConfig.ipv6.internalTransitSwitchSubnet and internalJoinSubnet must differ`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.internalTransitSwitchSubnet) || has(self.internalTransitSwitchSubnet)`,message=`ovnKubernetesConfig.ipv6.internalTransitSwitchSubnet must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.internalJoinSubnet) || has(self.internalJoinSubnet)`,message=`ovnKubernetesConfig.ipv6.internalJoinSubnet must not be removed once it is set`
type OVNIPv6Config struct {
	// internalTransitSwitchSubnet joins the nodes, e.g. "fd97::/64".
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=48
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self) && cidr(self).ip().family() == 6 && cidr(self).prefixLength() <= 125`,message=`ovnKubernetesConfig.ipv6.internalTransitSwitchSubnet must be an IPv6 network with a prefix of at most 125, such as fd97::/64`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`ovnKubernetesConfig.ipv6.internalTransitSwitchSubnet is immutable: create a new HostedCluster to change it`
	InternalTransitSwitchSubnet string `json:"internalTransitSwitchSubnet,omitempty"`

	// internalJoinSubnet joins the routers of a node, e.g. "fd98::/64".
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=48
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self) && cidr(self).ip().family() == 6 && cidr(self).prefixLength() <= 125`,message=`ovnKubernetesConfig.ipv6.internalJoinSubnet must be an IPv6 network with a prefix of at most 125, such as fd98::/64`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`ovnKubernetesConfig.ipv6.internalJoinSubnet is immutable: create a new HostedCluster to change it`
	InternalJoinSubnet string `json:"internalJoinSubnet,omitempty"`
}

// IngressOperatorSpec configures the default ingress.
type IngressOperatorSpec struct {
	// endpointPublishingStrategy says how the default ingress is reached. Unset means what suits the platform: host
	// network on MAAS, None and Agent.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	EndpointPublishingStrategy *operatorv1.EndpointPublishingStrategy `json:"endpointPublishingStrategy,omitempty"`
}
