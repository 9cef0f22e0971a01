// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ClusterFinalizer is kept on a MaasCluster until what it made in MAAS is gone.
	ClusterFinalizer = "maascluster.infrastructure.cluster.x-k8s.io"

	// CustomDNSAnnotation on a MaasCluster says that its endpoint is made by others: the provider makes no DNS resource
	// and leaves spec.controlPlaneEndpoint alone. Its value does not matter.
	CustomDNSAnnotation = "spectrocloud.com/custom-dns-provided"

	// RestoredFromAnnotation on a MaasCluster holds the UID of one that was lost, whose place this one takes. Machines that are still
	// installed for that one are kept for the MaasMachines of the pools that had them: nothing is released, and nothing is installed
	// again. The lost one must not come back: both would manage the same machines. It is set when the MaasCluster is made, and never changes.
	RestoredFromAnnotation = "infrastructure.cluster.x-k8s.io/restored-from"
	// RestoredAtAnnotation on a MaasCluster is the time (RFC 3339) at which the machines of the lost one were looked for in MAAS. Until it
	// is there, nothing is allocated for the cluster and nothing is swept.
	RestoredAtAnnotation = "infrastructure.cluster.x-k8s.io/restored-at"
)

// MaasClusterSpec says what a cluster needs of MAAS as a whole.
//
// +kubebuilder:validation:XValidation:rule=`self.dnsDomain == oldSelf.dnsDomain`,message=`dnsDomain is immutable: create a new cluster to change it`
type MaasClusterSpec struct {
	// dnsDomain is the MAAS domain in which the API endpoint gets its name, e.g. "maas".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	DNSDomain string `json:"dnsDomain"`

	// controlPlaneEndpoint is where the API server of the cluster is reached. The provider fills it from the DNS name that
	// it makes, unless the annotation spectrocloud.com/custom-dns-provided says that others do.
	//
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// failureDomains are the MAAS zones over which machines may be spread. Empty means all zones of the server.
	//
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// preferredSubnets are the subnets (CIDRs) whose addresses of a control plane machine go into DNS, in the order of preference.
	// Empty means every address.
	//
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.all(s, isCIDR(s))`,message=`preferredSubnets must be networks in CIDR form, such as 10.0.0.0/24`
	PreferredSubnets []string `json:"preferredSubnets,omitempty"`

	// identityRef names the Secret in the cluster's namespace with MAAS_ENDPOINT, MAAS_API_KEY and, when the server's
	// certificate is signed privately, MAAS_CA_BUNDLE. Empty means the identity that the provider was started with.
	//
	// +optional
	IdentityRef *IdentityReference `json:"identityRef,omitempty"`

	// lxdConfig makes the machines of this cluster LXD hosts.
	//
	// +optional
	LXDConfig *LXDHostConfig `json:"lxdConfig,omitempty"`
}

// IdentityReference names a Secret with MAAS credentials.
type IdentityReference struct {
	// name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// APIEndpoint is a host and port.
type APIEndpoint struct {
	// host is a DNS name or an IP address.
	//
	// +kubebuilder:validation:MaxLength=512
	// +required
	Host string `json:"host"`

	// port is a TCP port.
	//
	// +required
	Port int `json:"port"`
}

// IsZero reports whether the endpoint is not known yet.
func (e APIEndpoint) IsZero() bool { return e.Host == "" && e.Port == 0 }

// LXDHostConfig says how the machines of a cluster serve as LXD hosts for virtual machines of others. It also holds the defaults of the lxdConfig of the cluster's own virtual
// machines.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.nicParent) || !has(self.networkBridge) || self.nicParent == self.networkBridge`,message=`lxdConfig.nicParent and lxdConfig.networkBridge are two spellings of one thing: set one of them`
type LXDHostConfig struct {
	LXDMachineConfig `json:",inline"`

	// enabled registers the machines as LXD hosts with MAAS.
	//
	// +kubebuilder:default=false
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// resourcePool that the hosts are put into.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	ResourcePool string `json:"resourcePool,omitempty"`

	// zone that the hosts are put into.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Zone string `json:"zone,omitempty"`

	// storageBackend of the LXD storage pool.
	//
	// +kubebuilder:default=zfs
	// +kubebuilder:validation:MaxLength=255
	// +optional
	StorageBackend string `json:"storageBackend,omitempty"`

	// storageSize of the LXD storage pool in GB.
	//
	// +kubebuilder:default="50"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9]+$')`,message=`lxdConfig.storageSize must be a number of GB, such as 50`
	StorageSize string `json:"storageSize,omitempty"`

	// nicType says how virtual machines reach the network.
	//
	// +kubebuilder:validation:Enum=bridge;macvlan
	// +optional
	NICType string `json:"nicType,omitempty"`

	// nicParent is the host's bridge or interface that virtual machines hang on.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	NICParent string `json:"nicParent,omitempty"`

	// networkBridge is the older spelling of nicParent.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	NetworkBridge string `json:"networkBridge,omitempty"`

	// skipNetworkUpdate leaves the host's own network configuration alone.
	//
	// +kubebuilder:default=true
	// +optional
	SkipNetworkUpdate *bool `json:"skipNetworkUpdate,omitempty"`
}

// MaasClusterStatus is what the provider saw and made of a MaasCluster.
type MaasClusterStatus struct {
	// ready reports whether machines can be made for this cluster.
	//
	// +kubebuilder:default=false
	// +required
	Ready bool `json:"ready"`

	// initialization follows the Cluster API contract v1beta2.
	//
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// network is what the provider made in MAAS for the cluster's endpoint.
	//
	// +optional
	Network NetworkStatus `json:"network,omitempty,omitzero"`

	// failureDomains are the MAAS zones that machines may be placed in.
	//
	// +optional
	FailureDomains FailureDomains `json:"failureDomains,omitempty"`

	// conditions tell how the cluster is.
	//
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InitializationStatus is the part of a status that Cluster API waits for.
type InitializationStatus struct {
	// provisioned turns true once and stays so.
	//
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// NetworkStatus is what the provider made for a cluster's endpoint.
type NetworkStatus struct {
	// dnsName is the full name of the DNS resource in MAAS.
	//
	// +optional
	DNSName string `json:"dnsName,omitempty"`
}

// FailureDomains are the zones of a cluster, sorted by name. An object stored before v0.9 of the upstream provider holds
// them as a map; that is read too.
//
// +kubebuilder:validation:MaxItems=100
// +listType=map
// +listMapKey=name
type FailureDomains []FailureDomain

// FailureDomain is one MAAS zone.
type FailureDomain struct {
	// name of the zone.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`

	// controlPlane reports whether control plane machines may be placed there.
	//
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`

	// attributes that MAAS has of the zone.
	//
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// UnmarshalJSON reads the list, and the map that older versions stored.
func (f *FailureDomains) UnmarshalJSON(data []byte) error {
	var list []FailureDomain
	listErr := json.Unmarshal(data, &list)
	if listErr == nil {
		*f = list
		return nil
	}
	byName := map[string]FailureDomain{}
	if err := json.Unmarshal(data, &byName); err != nil {
		return fmt.Errorf("reading failureDomains: neither a list (%w) nor the map of older versions", listErr)
	}
	*f = FailureDomains{}
	for name, domain := range byName {
		domain.Name = name
		*f = append(*f, domain)
	}
	slices.SortFunc(*f, func(a, b FailureDomain) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return nil
}

// MaasCluster is the infrastructure of a Cluster API Cluster whose machines come from MAAS.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=maasclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/provider=infrastructure-maas","cluster.x-k8s.io/v1beta1=v1beta1","cluster.x-k8s.io/v1beta2=v1beta1"}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.metadata.labels['cluster\.x-k8s\.io/cluster-name']`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.controlPlaneEndpoint.host`
// +kubebuilder:printcolumn:name="Zones",type=string,JSONPath=`.status.failureDomains[*].name`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MaasCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster should be.
	//
	// +optional
	Spec MaasClusterSpec `json:"spec,omitempty"`

	// status is what the cluster is.
	//
	// +optional
	Status MaasClusterStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *MaasCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (c *MaasCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// MaasClusterList is a list of MaasClusters.
//
// +kubebuilder:object:root=true
type MaasClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MaasCluster `json:"items"`
}
