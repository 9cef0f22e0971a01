package v1beta1

import "github.com/openshift/hypershift/api/util/ipnet"

// DNSSpec is the domain of a cluster.
type DNSSpec struct {
	// baseDomain is the domain under which the cluster's names live: its ingress answers to
	// "*.apps.<cluster name>.<baseDomain>". May be empty on platforms that need none.
	// +kubebuilder:validation:MaxLength=253
	// +required
	BaseDomain string `json:"baseDomain"`

	// baseDomainPrefix stands in for the cluster's name in "<prefix>.<baseDomain>". Unset means the cluster's name;
	// empty means no prefix.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	BaseDomainPrefix *string `json:"baseDomainPrefix,omitempty"`

	// publicZoneID is the DNS zone of public names, on platforms that have zones.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=258
	// +optional
	PublicZoneID string `json:"publicZoneID,omitempty"`

	// privateZoneID is the DNS zone of names that only the cluster sees, on platforms that have zones.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=265
	// +optional
	PrivateZoneID string `json:"privateZoneID,omitempty"`
}

// NetworkType is the network plugin of the guest cluster.
//
// +kubebuilder:validation:Enum=OpenShiftSDN;Calico;OVNKubernetes;Other
type NetworkType string

const (
	// OpenShiftSDN is the plugin of old OpenShift releases.
	OpenShiftSDN NetworkType = "OpenShiftSDN"
	// Calico is brought by the user.
	Calico NetworkType = "Calico"
	// OVNKubernetes is the plugin of OpenShift releases.
	OVNKubernetes NetworkType = "OVNKubernetes"
	// Other is brought by the user. A Kubernetes payload brings its own plain network when allocateNodeCIDRs is on.
	Other NetworkType = "Other"
)

// AllocateNodeCIDRsMode says whether each node gets a range of clusterNetwork as its spec.podCIDR.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type AllocateNodeCIDRsMode string

const (
	// AllocateNodeCIDRsEnabled gives each node a range.
	AllocateNodeCIDRsEnabled AllocateNodeCIDRsMode = "Enabled"
	// AllocateNodeCIDRsDisabled leaves addresses to the network plugin.
	AllocateNodeCIDRsDisabled AllocateNodeCIDRsMode = "Disabled"
)

// ClusterNetworking is the networks of a cluster. No network may be listed twice or overlap another.
type ClusterNetworking struct {
	// machineNetwork is where the nodes have their addresses. Empty means that nothing is known of it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +optional
	MachineNetwork []MachineNetworkEntry `json:"machineNetwork,omitempty"`

	// clusterNetwork is where pods get their addresses: one entry per IP family.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:default:={{cidr: "10.132.0.0/14"}}
	// +optional
	ClusterNetwork []ClusterNetworkEntry `json:"clusterNetwork,omitempty"`

	// serviceNetwork is where services get their addresses: one entry per IP family.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:default:={{cidr: "172.31.0.0/16"}}
	// +optional
	ServiceNetwork []ServiceNetworkEntry `json:"serviceNetwork,omitempty"`

	// networkType is the network plugin.
	// +kubebuilder:default:="OVNKubernetes"
	// +optional
	NetworkType NetworkType `json:"networkType,omitempty"`

	// apiServer says how the nodes reach the API.
	// +optional
	APIServer *APIServerNetworking `json:"apiServer,omitempty"`

	// allocateNodeCIDRs says whether each node gets a range of clusterNetwork. Enabled needs networkType Other.
	// Unset means Disabled.
	// +optional
	AllocateNodeCIDRs *AllocateNodeCIDRsMode `json:"allocateNodeCIDRs,omitempty"`
}

// MachineNetworkEntry is one network of the nodes.
type MachineNetworkEntry struct {
	// cidr is the network, e.g. "192.168.10.0/24".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=43
	// +required
	CIDR ipnet.IPNet `json:"cidr"`
}

// ClusterNetworkEntry is one network of the pods.
type ClusterNetworkEntry struct {
	// cidr is the network, e.g. "10.132.0.0/14".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=43
	// +required
	CIDR ipnet.IPNet `json:"cidr"`

	// hostPrefix is the prefix length of the range that each node gets, e.g. 23. Zero means the network plugin's
	// own default: 23 for IPv4, 64 for IPv6.
	// +optional
	HostPrefix int32 `json:"hostPrefix,omitempty"`
}

// ServiceNetworkEntry is one network of the services.
type ServiceNetworkEntry struct {
	// cidr is the network, e.g. "172.31.0.0/16".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=43
	// +required
	CIDR ipnet.IPNet `json:"cidr"`
}

// CIDRBlock is a network in CIDR form, e.g. "203.0.113.0/24".
//
// +kubebuilder:validation:MaxLength=43
type CIDRBlock string

// APIServerNetworking says how the nodes reach the API, and who may.
type APIServerNetworking struct {
	// advertiseAddress is the address on each node where a proxy passes API calls on. Unset means 172.20.0.1 (fd00::1
	// in an IPv6 cluster).
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AdvertiseAddress *string `json:"advertiseAddress,omitempty"`

	// port is the port of the API inside the cluster. Unset means 6443.
	// +optional
	Port *int32 `json:"port,omitempty"`

	// allowedCIDRBlocks are the networks that may reach the API, where the load balancer can filter. Empty means all.
	// +kubebuilder:validation:MaxItems=500
	// +listType=set
	// +optional
	AllowedCIDRBlocks []CIDRBlock `json:"allowedCIDRBlocks,omitempty"`
}
