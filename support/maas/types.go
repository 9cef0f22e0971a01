// SPDX-License-Identifier: Apache-2.0

package maas

import "encoding/json"

// Version is the version of a MAAS.
type Version struct {
	Version      string   `json:"version"`
	Subversion   string   `json:"subversion"`
	Capabilities []string `json:"capabilities"`
}

// User is an account of MAAS.
type User struct {
	Username    string `json:"username"`
	Email       string `json:"email"`
	IsLocal     bool   `json:"is_local"`
	IsSuperuser bool   `json:"is_superuser"`
	ResourceURI string `json:"resource_uri"`
}

// Zone is an availability zone.
type Zone struct {
	ID          int    `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	ResourceURI string `json:"resource_uri"`
}

// Pool is a resource pool. The default pool has ID 0.
type Pool struct {
	ID          int    `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	ResourceURI string `json:"resource_uri"`
}

// Tag is a tag of machines. MAAS computes the machines of a tag with a definition.
type Tag struct {
	Name        string `json:"name"`
	Definition  string `json:"definition"`
	Comment     string `json:"comment"`
	KernelOpts  string `json:"kernel_opts"`
	ResourceURI string `json:"resource_uri"`
}

// TagUpdate counts the machines that were added to a tag and removed from it.
type TagUpdate struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// Domain is a DNS domain. The default domain has ID 0. TTL is in seconds; nil means MAAS's default.
type Domain struct {
	ID                  int    `json:"id"`
	Name                string `json:"name"`
	TTL                 *int   `json:"ttl"`
	Authoritative       bool   `json:"authoritative"`
	ResourceRecordCount int    `json:"resource_record_count"`
	IsDefault           bool   `json:"is_default"`
	ResourceURI         string `json:"resource_uri"`
}

// DNSResource is a DNS name with its addresses. AddressTTL is in seconds; nil means the TTL of the domain. An ID of -1
// means that MAAS generated the name for a machine.
type DNSResource struct {
	ID              int                 `json:"id"`
	FQDN            string              `json:"fqdn"`
	AddressTTL      *int                `json:"address_ttl"`
	IPAddresses     []IPAddress         `json:"ip_addresses"`
	ResourceRecords []DNSResourceRecord `json:"resource_records"`
	ResourceURI     string              `json:"resource_uri"`
}

// IPs returns the current addresses of the name. It omits the empty entries that released addresses leave.
func (r DNSResource) IPs() []string {
	var ips []string
	for _, address := range r.IPAddresses {
		if address.IP != "" {
			ips = append(ips, address.IP)
		}
	}
	return ips
}

// DNSResourceRecord is a record other than an address.
type DNSResourceRecord struct {
	ID     int    `json:"id"`
	FQDN   string `json:"fqdn"`
	TTL    *int   `json:"ttl"`
	RRType string `json:"rrtype"`
	RRData string `json:"rrdata"`
}

// IPAddress is an address in MAAS.
type IPAddress struct {
	ID            int         `json:"id"`
	IP            string      `json:"ip"`
	AllocType     int         `json:"alloc_type"`
	AllocTypeName string      `json:"alloc_type_name"`
	Created       string      `json:"created"`
	Owner         *User       `json:"owner"`
	Subnet        *Subnet     `json:"subnet"`
	InterfaceSet  []Interface `json:"interface_set"`
	ResourceURI   string      `json:"resource_uri"`
}

// Subnet is an IP subnet.
type Subnet struct {
	ID          int      `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	CIDR        string   `json:"cidr"`
	GatewayIP   string   `json:"gateway_ip"`
	DNSServers  []string `json:"dns_servers"`
	Space       string   `json:"space"`
	VLAN        *VLAN    `json:"vlan"`
	Managed     bool     `json:"managed"`
	AllowDNS    bool     `json:"allow_dns"`
	AllowProxy  bool     `json:"allow_proxy"`
	RDNSMode    int      `json:"rdns_mode"`
	ResourceURI string   `json:"resource_uri"`
}

// IPRange is a range of addresses in a subnet.
type IPRange struct {
	Start        string   `json:"start"`
	End          string   `json:"end"`
	NumAddresses int      `json:"num_addresses"`
	Purpose      []string `json:"purpose"`
}

// AddressRange is a range of a subnet that administrators set aside; both ends are included.
type AddressRange struct {
	ID int `json:"id"`
	// Type is "dynamic" or "reserved".
	Type    string  `json:"type"`
	StartIP string  `json:"start_ip"`
	EndIP   string  `json:"end_ip"`
	Subnet  *Subnet `json:"subnet"`
	Comment string  `json:"comment"`
}

// HeldAddress is a used address of a subnet.
type HeldAddress struct {
	IP        string `json:"ip"`
	AllocType int    `json:"alloc_type"`
	User      string `json:"user"`
	// Node is nil if no node has the address.
	Node *HolderSummary `json:"node_summary"`
}

// HolderSummary identifies the node that has an address.
type HolderSummary struct {
	SystemID string `json:"system_id"`
	Hostname string `json:"hostname"`
	// Via is the name of the interface.
	Via string `json:"via"`
}

// VLAN is a broadcast domain.
type VLAN struct {
	ID          int    `json:"id"`
	Name        string `json:"name"`
	VID         int    `json:"vid"`
	MTU         int    `json:"mtu"`
	Fabric      string `json:"fabric"`
	FabricID    int    `json:"fabric_id"`
	DHCPOn      bool   `json:"dhcp_on"`
	Space       string `json:"space"`
	ResourceURI string `json:"resource_uri"`
}

// BootResource is an image that MAAS can deploy.
type BootResource struct {
	ID int `json:"id"`
	// Type is "Synced" or "Uploaded".
	Type string `json:"type"`
	// Name is "<os>/<series>" for a synced image; an uploaded custom image has no prefix here.
	Name         string `json:"name"`
	Architecture string `json:"architecture"`
	SubArches    string `json:"subarches"`
	Title        string `json:"title"`
	BaseImage    string `json:"base_image"`
	ResourceURI  string `json:"resource_uri"`
}

// Resources are the resources of a VM host: memory in MiB, local storage in bytes.
type Resources struct {
	Cores        int   `json:"cores"`
	Memory       int   `json:"memory"`
	LocalStorage int64 `json:"local_storage"`
}

// VMHost is a host on which MAAS composes virtual machines.
type VMHost struct {
	ID                    int           `json:"id"`
	Name                  string        `json:"name"`
	Type                  string        `json:"type"`
	Tags                  []string      `json:"tags"`
	Architectures         []string      `json:"architectures"`
	Capabilities          []string      `json:"capabilities"`
	Total                 Resources     `json:"total"`
	Used                  Resources     `json:"used"`
	Available             Resources     `json:"available"`
	Zone                  Zone          `json:"zone"`
	Pool                  Pool          `json:"pool"`
	CPUOverCommitRatio    float64       `json:"cpu_over_commit_ratio"`
	MemoryOverCommitRatio float64       `json:"memory_over_commit_ratio"`
	StoragePools          []StoragePool `json:"storage_pools"`
	Host                  *Reference    `json:"host"`
	Version               string        `json:"version"`
	ResourceURI           string        `json:"resource_uri"`
}

// StoragePool is a storage pool for disks on a VM host; sizes are in bytes.
type StoragePool struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	Path      string `json:"path"`
	Total     int64  `json:"total"`
	Used      int64  `json:"used"`
	Available int64  `json:"available"`
	Default   bool   `json:"default"`
}

// Event is an entry of MAAS's event log.
type Event struct {
	ID          int    `json:"id"`
	Node        string `json:"node"`
	Hostname    string `json:"hostname"`
	Level       string `json:"level"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Username    string `json:"username"`
	// Created is in MAAS's own format, e.g. "Fri, 20 Nov. 2026 14:57:25".
	Created string `json:"created"`
}

// EventPage is one page of the event log, newest first.
type EventPage struct {
	Count   int     `json:"count"`
	Events  []Event `json:"events"`
	NextURI string  `json:"next_uri"`
	PrevURI string  `json:"prev_uri"`
}

// ConfigValue is the JSON value of a setting: a string, number, boolean or null.
type ConfigValue = json.RawMessage
