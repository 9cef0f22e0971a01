package v1beta1

import operatorv1 "github.com/openshift/api/operator/v1"

// OperatorConfiguration configures operators of the guest cluster.
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
	DisableMultiNetwork *bool `json:"disableMultiNetwork,omitempty"`

	// ovnKubernetesConfig configures OVN-Kubernetes. It needs networkType OVNKubernetes.
	// +optional
	OVNKubernetesConfig *OVNKubernetesConfig `json:"ovnKubernetesConfig,omitempty"`
}

// OVNKubernetesConfig configures OVN-Kubernetes.
//
// +kubebuilder:validation:MinProperties=1
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
	MTU int32 `json:"mtu,omitempty"`

	// v4InternalSubnet is an IPv4 network that OVN-Kubernetes uses for itself, e.g. "100.64.0.0/16". It cannot be changed.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +optional
	V4InternalSubnet string `json:"v4InternalSubnet,omitempty"`

	// v6InternalSubnet is an IPv6 network that OVN-Kubernetes uses for itself, e.g. "fd98::/64". It cannot be changed.
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=48
	// +optional
	V6InternalSubnet string `json:"v6InternalSubnet,omitempty"`
}

// OVNIPv4Config is the IPv4 networks that OVN-Kubernetes uses for itself. They must overlap no network of the cluster.
//
// +kubebuilder:validation:MinProperties=1
type OVNIPv4Config struct {
	// internalTransitSwitchSubnet joins the nodes, e.g. "100.88.0.0/16".
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +optional
	InternalTransitSwitchSubnet string `json:"internalTransitSwitchSubnet,omitempty"`

	// internalJoinSubnet joins the routers of a node, e.g. "100.64.0.0/16".
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=18
	// +optional
	InternalJoinSubnet string `json:"internalJoinSubnet,omitempty"`
}

// OVNIPv6Config is the IPv6 networks that OVN-Kubernetes uses for itself. They cannot be changed.
//
// +kubebuilder:validation:MinProperties=1
type OVNIPv6Config struct {
	// internalTransitSwitchSubnet joins the nodes, e.g. "fd97::/64".
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=48
	// +optional
	InternalTransitSwitchSubnet string `json:"internalTransitSwitchSubnet,omitempty"`

	// internalJoinSubnet joins the routers of a node, e.g. "fd98::/64".
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=48
	// +optional
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
