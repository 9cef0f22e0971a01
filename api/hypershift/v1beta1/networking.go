// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "github.com/openshift/hypershift/api/util/ipnet"

// DNSSpec is the domain of a cluster.
//
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.baseDomainPrefix) || has(self.baseDomainPrefix)`,message=`dns.baseDomainPrefix must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.publicZoneID) || has(self.publicZoneID)`,message=`dns.publicZoneID must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.privateZoneID) || has(self.privateZoneID)`,message=`dns.privateZoneID must not be removed once it is set`
type DNSSpec struct {
	// baseDomain is the domain under which the cluster's names live: its ingress answers to
	// "*.apps.<cluster name>.<baseDomain>". May be empty on platforms that need none.
	// +kubebuilder:validation:MaxLength=253
	// +required
	// +kubebuilder:validation:XValidation:rule=`size(self) == 0 || self.matches(r'^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$')`,message=`dns.baseDomain must be a domain name such as example.com`
	// +kubebuilder:validation:XValidation:rule=`size(oldSelf) == 0 || self == oldSelf`,message=`dns.baseDomain is immutable once it is set: create a new HostedCluster to change it`
	BaseDomain string `json:"baseDomain"`

	// baseDomainPrefix stands in for the cluster's name in "<prefix>.<baseDomain>". Unset means the cluster's name;
	// empty means no prefix.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +kubebuilder:validation:XValidation:rule=`size(self) == 0 || self.matches(r'^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$')`,message=`dns.baseDomainPrefix must be a domain name such as production`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`dns.baseDomainPrefix is immutable: create a new HostedCluster to change it`
	BaseDomainPrefix *string `json:"baseDomainPrefix,omitempty"`

	// publicZoneID is the DNS zone of public names, on platforms that have zones.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=258
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`dns.publicZoneID is immutable: create a new HostedCluster to change it`
	PublicZoneID string `json:"publicZoneID,omitempty"`

	// privateZoneID is the DNS zone of names that only the cluster sees, on platforms that have zones.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=265
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`dns.privateZoneID is immutable: create a new HostedCluster to change it`
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

// The rules on networks ask only whether one holds the address of another: kube-apiserver 1.31 takes 10.133.0.0/16 for
// outside of 10.132.0.0/14 in containsCIDR, and knows no bound for the cost of comparing two networks by ==.

// ClusterNetworking is the networks of a cluster. No network may be listed twice or overlap another.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.machineNetwork) || !has(self.clusterNetwork) || self.machineNetwork.all(a, self.clusterNetwork.all(b, !isCIDR(a.cidr) || !isCIDR(b.cidr) || !(cidr(a.cidr).containsIP(cidr(b.cidr).ip()) || cidr(b.cidr).containsIP(cidr(a.cidr).ip()))))`,message=`networking.machineNetwork and networking.clusterNetwork must not overlap: choose another network for one of them`
// +kubebuilder:validation:XValidation:rule=`!has(self.machineNetwork) || !has(self.serviceNetwork) || self.machineNetwork.all(a, self.serviceNetwork.all(b, !isCIDR(a.cidr) || !isCIDR(b.cidr) || !(cidr(a.cidr).containsIP(cidr(b.cidr).ip()) || cidr(b.cidr).containsIP(cidr(a.cidr).ip()))))`,message=`networking.machineNetwork and networking.serviceNetwork must not overlap: choose another network for one of them`
// +kubebuilder:validation:XValidation:rule=`!has(self.clusterNetwork) || !has(self.serviceNetwork) || self.clusterNetwork.all(a, self.serviceNetwork.all(b, !isCIDR(a.cidr) || !isCIDR(b.cidr) || !(cidr(a.cidr).containsIP(cidr(b.cidr).ip()) || cidr(b.cidr).containsIP(cidr(a.cidr).ip()))))`,message=`networking.clusterNetwork and networking.serviceNetwork must not overlap: choose another network for one of them`
// +kubebuilder:validation:XValidation:rule=`!has(self.machineNetwork) || size(self.machineNetwork) < 2 || !isCIDR(self.machineNetwork[0].cidr) || !isCIDR(self.machineNetwork[1].cidr) || !(cidr(self.machineNetwork[0].cidr).containsIP(cidr(self.machineNetwork[1].cidr).ip()) || cidr(self.machineNetwork[1].cidr).containsIP(cidr(self.machineNetwork[0].cidr).ip()))`,message=`the two entries of networking.machineNetwork must not overlap`
// +kubebuilder:validation:XValidation:rule=`!has(self.clusterNetwork) || size(self.clusterNetwork) < 2 || !isCIDR(self.clusterNetwork[0].cidr) || !isCIDR(self.clusterNetwork[1].cidr) || !(cidr(self.clusterNetwork[0].cidr).containsIP(cidr(self.clusterNetwork[1].cidr).ip()) || cidr(self.clusterNetwork[1].cidr).containsIP(cidr(self.clusterNetwork[0].cidr).ip()))`,message=`the two entries of networking.clusterNetwork must not overlap`
// +kubebuilder:validation:XValidation:rule=`!has(self.serviceNetwork) || size(self.serviceNetwork) < 2 || !isCIDR(self.serviceNetwork[0].cidr) || !isCIDR(self.serviceNetwork[1].cidr) || !(cidr(self.serviceNetwork[0].cidr).containsIP(cidr(self.serviceNetwork[1].cidr).ip()) || cidr(self.serviceNetwork[1].cidr).containsIP(cidr(self.serviceNetwork[0].cidr).ip()))`,message=`the two entries of networking.serviceNetwork must not overlap`
// +kubebuilder:validation:XValidation:rule=`!has(self.allocateNodeCIDRs) || self.allocateNodeCIDRs != 'Enabled' || (has(self.networkType) && self.networkType == 'Other')`,message=`networking.allocateNodeCIDRs Enabled needs networking.networkType Other: other network plugins give out ranges themselves`
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() || (has(self.networkType) && self.networkType in ['Calico', 'Other'] && !(has(self.allocateNodeCIDRs) && self.allocateNodeCIDRs == 'Enabled')) || !has(self.clusterNetwork) || self.clusterNetwork.all(c, !isCIDR(c.cidr) || (has(c.hostPrefix) && c.hostPrefix != 0) || cidr(c.cidr).prefixLength() <= (cidr(c.cidr).ip().family() == 4 ? 23 : 64))`,message=`networking.clusterNetwork.cidr is smaller than the range that each node gets, /23 or /64 by default: set hostPrefix, such as 26 for 10.132.0.0/24`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() || (has(self.networkType) && self.networkType in ['Calico', 'Other'] && !(has(self.allocateNodeCIDRs) && self.allocateNodeCIDRs == 'Enabled')) || !has(self.clusterNetwork) || self.clusterNetwork.all(c, !isCIDR(c.cidr) || cidr(c.cidr).ip().family() == 4 || (has(c.hostPrefix) && c.hostPrefix != 0 ? c.hostPrefix : 64) - cidr(c.cidr).prefixLength() <= 16 || ((has(c.hostPrefix) && c.hostPrefix != 0 ? c.hostPrefix : 64) == 64 && !(has(self.allocateNodeCIDRs) && self.allocateNodeCIDRs == 'Enabled')))`,message=`networking.clusterNetwork.hostPrefix must be at most 16 longer than the prefix of an IPv6 cidr, such as 64 for fd01::/48`,optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.machineNetwork) || has(self.machineNetwork)`,message=`networking.machineNetwork must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.allocateNodeCIDRs) || has(self.allocateNodeCIDRs)`,message=`networking.allocateNodeCIDRs must not be removed once it is set`
type ClusterNetworking struct {
	// machineNetwork is where the nodes have their addresses. Empty means that nothing is known of it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf || (size(self) == size(oldSelf) && [0, 1].all(i, i >= size(self) || (isCIDR(self[i].cidr) && isCIDR(oldSelf[i].cidr) && cidr(self[i].cidr).prefixLength() == cidr(oldSelf[i].cidr).prefixLength() && cidr(self[i].cidr).containsIP(cidr(oldSelf[i].cidr).ip()))))`,message=`networking.machineNetwork is immutable: create a new HostedCluster to change it`
	MachineNetwork []MachineNetworkEntry `json:"machineNetwork,omitempty"`

	// clusterNetwork is where pods get their addresses: one entry per IP family.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:default:={{cidr: "10.132.0.0/14"}}
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf || (size(self) == size(oldSelf) && [0, 1].all(i, i >= size(self) || (isCIDR(self[i].cidr) && isCIDR(oldSelf[i].cidr) && cidr(self[i].cidr).prefixLength() == cidr(oldSelf[i].cidr).prefixLength() && cidr(self[i].cidr).containsIP(cidr(oldSelf[i].cidr).ip()) && (has(self[i].hostPrefix) ? self[i].hostPrefix : 0) == (has(oldSelf[i].hostPrefix) ? oldSelf[i].hostPrefix : 0))))`,message=`networking.clusterNetwork is immutable: create a new HostedCluster to change it`
	ClusterNetwork []ClusterNetworkEntry `json:"clusterNetwork,omitempty"`

	// serviceNetwork is where services get their addresses: one entry per IP family.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:default:={{cidr: "172.31.0.0/16"}}
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf || (size(self) == size(oldSelf) && [0, 1].all(i, i >= size(self) || (isCIDR(self[i].cidr) && isCIDR(oldSelf[i].cidr) && cidr(self[i].cidr).prefixLength() == cidr(oldSelf[i].cidr).prefixLength() && cidr(self[i].cidr).containsIP(cidr(oldSelf[i].cidr).ip()))))`,message=`networking.serviceNetwork is immutable: create a new HostedCluster to change it`
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
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`networking.allocateNodeCIDRs is immutable: create a new HostedCluster to change it`
	AllocateNodeCIDRs *AllocateNodeCIDRsMode `json:"allocateNodeCIDRs,omitempty"`
}

// MachineNetworkEntry is one network of the nodes.
type MachineNetworkEntry struct {
	// cidr is the network, e.g. "192.168.10.0/24".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=43
	// +required
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self)`,message=`networking.machineNetwork.cidr must be a network in CIDR form, such as 192.168.10.0/24`
	CIDR ipnet.IPNet `json:"cidr"`
}

// ClusterNetworkEntry is one network of the pods.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.hostPrefix) || self.hostPrefix == 0 || !isCIDR(self.cidr) || (self.hostPrefix > cidr(self.cidr).prefixLength() && self.hostPrefix <= (cidr(self.cidr).ip().family() == 4 ? 32 : 128))`,message=`networking.clusterNetwork.hostPrefix must be longer than the prefix of cidr and fit its IP family, such as 23 for 10.132.0.0/14`
type ClusterNetworkEntry struct {
	// cidr is the network, e.g. "10.132.0.0/14".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=43
	// +required
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self)`,message=`networking.clusterNetwork.cidr must be a network in CIDR form, such as 10.132.0.0/14`
	CIDR ipnet.IPNet `json:"cidr"`

	// hostPrefix is the prefix length of the range that each node gets, e.g. 23. Zero means the network plugin's
	// own default: 23 for IPv4, 64 for IPv6. A network that is smaller than one such range needs a hostPrefix.
	// +optional
	HostPrefix int32 `json:"hostPrefix,omitempty"`
}

// ServiceNetworkEntry is one network of the services.
type ServiceNetworkEntry struct {
	// cidr is the network, e.g. "172.31.0.0/16".
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=43
	// +required
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self)`,message=`networking.serviceNetwork.cidr must be a network in CIDR form, such as 172.31.0.0/16`
	CIDR ipnet.IPNet `json:"cidr"`
}

// CIDRBlock is a network in CIDR form, e.g. "203.0.113.0/24".
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule=`isCIDR(self)`,message=`networking.apiServer.allowedCIDRBlocks must be networks in CIDR form, such as 203.0.113.0/24`
type CIDRBlock string

// APIServerNetworking says how the nodes reach the API, and who may.
//
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.advertiseAddress) || has(self.advertiseAddress)`,message=`networking.apiServer.advertiseAddress must not be removed once it is set`
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.port) || has(self.port)`,message=`networking.apiServer.port must not be removed once it is set`
type APIServerNetworking struct {
	// advertiseAddress is the address on each node where a proxy passes API calls on. Unset means 172.20.0.1 (fd00::1
	// in an IPv6 cluster).
	// +kubebuilder:validation:MaxLength=255
	// +optional
	// +kubebuilder:validation:XValidation:rule=`isIP(self)`,message=`networking.apiServer.advertiseAddress must be an IP address`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`networking.apiServer.advertiseAddress is immutable: create a new HostedCluster to change it`
	AdvertiseAddress *string `json:"advertiseAddress,omitempty"`

	// port is the port of the API inside the cluster. Unset means 6443.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self >= 1 && self <= 65535`,message=`networking.apiServer.port must be a port from 1 to 65535`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message=`networking.apiServer.port is immutable: create a new HostedCluster to change it`
	Port *int32 `json:"port,omitempty"`

	// allowedCIDRBlocks are the networks that may reach the API, where the load balancer can filter. Empty means all.
	// +kubebuilder:validation:MaxItems=500
	// +listType=set
	// +optional
	AllowedCIDRBlocks []CIDRBlock `json:"allowedCIDRBlocks,omitempty"`
}
