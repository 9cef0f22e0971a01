// SPDX-License-Identifier: Apache-2.0

// Package inventory holds what a MAAS server knows: typed tables over a store,
// and the reading of seeds.
package inventory

import "time"

// Zone is a physical zone.
type Zone struct {
	ID                int
	Name, Description string
}

// Pool is a resource pool.
type Pool struct {
	ID                int
	Name, Description string
}

// Tag is a tag; machines hold its name.
type Tag struct {
	ID                                    int
	Name, Definition, Comment, KernelOpts string
}

// Domain is a DNS domain.
type Domain struct {
	ID            int
	Name          string
	TTL           *int
	Authoritative bool
	Default       bool
}

// Space groups VLANs.
type Space struct {
	ID                int
	Name, Description string
}

// Fabric groups VLANs that reach each other.
type Fabric struct {
	ID        int
	Name      string
	ClassType *string
}

// VLAN is a layer-2 network.
type VLAN struct {
	ID, VID, FabricID int
	// SpaceID is nil in the space that is called undefined.
	SpaceID *int
	Name    string
	MTU     int
	DHCPOn  bool
	Extra   map[string]any
}

// Subnet is a layer-3 network.
type Subnet struct {
	ID                      int
	Name, Description, CIDR string
	VLANID                  int
	// Gateway is empty when there is none.
	Gateway    string
	DNSServers []string
	Managed    bool
	Extra      map[string]any
}

// Range is a dynamic or reserved range of addresses.
type Range struct {
	ID            int
	Type          string
	Start, End    string
	SubnetID      int
	User, Comment string
}

// Address is an address that no machine's link holds: reserved by a user, or
// given to a DNS record or a controller.
type Address struct {
	ID   int
	IP   string
	Type int
	// SubnetID is nil outside of every subnet.
	SubnetID *int
	Owner    string
	// Created and Updated are when the row was made and last given an address.
	Created, Updated time.Time
	// Interfaces are printed as the seed had them.
	Interfaces []any
}

// DNSResource is a name in a domain, with addresses.
type DNSResource struct {
	ID       int
	Name     string
	DomainID int
	TTL      *int
	// IPs are addresses; each is a row of Address or of a machine's link.
	IPs []string
}

// DNSRecord is a record of another type than an address.
type DNSRecord struct {
	ID           int
	Name         string
	DomainID     int
	TTL          *int
	Type, RRData string
}

// BootResource is an image for one architecture.
type BootResource struct {
	ID int
	// Type is Synced, Uploaded or Generated.
	Type         string
	Name         string
	Architecture string
	Subarches    string
	Title        string
	BaseImage    string
	LastDeployed *time.Time
	// FileType is what was uploaded, such as ddgz; empty for synced images.
	FileType string
	// Sets is printed as it is; it holds what the item shows beyond the list.
	Sets  map[string]any
	Extra map[string]any
}

// User is a MAAS user.
type User struct {
	Name, Email string
	Superuser   bool
	Local       bool
	// Keys are the user's API keys.
	Keys []NamedToken
	// SSHKeys are public keys.
	SSHKeys []SSHKey
}

// NamedToken is an API key with the name that its user gave it.
type NamedToken struct {
	Name string
	Token
}

// SSHKey is a public key of a user.
type SSHKey struct {
	ID     int
	Key    string
	Source string
}

// Event is an entry of a node's log.
type Event struct {
	ID       int
	SystemID string
	Hostname string
	Username string
	Level    string
	Created  time.Time
	// Type is the description of the event's type; Description its own text.
	Type, Description string
}

// Setting is a configuration value of the site.
type Setting struct {
	Name  string
	Value any
}

// Counter remembers the last number that was given out.
type Counter struct {
	Name string
	Last int
}

// Node is a controller or a device: printed as the seed had it.
type Node struct {
	SystemID string
	// Kind is rackcontrollers, regioncontrollers or devices.
	Kind string
	Doc  map[string]any
}
