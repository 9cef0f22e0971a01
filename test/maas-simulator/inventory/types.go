// SPDX-License-Identifier: Apache-2.0

// Package inventory defines the data of a MAAS server: typed tables over a store, and the loading of seeds.
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

// Tag is a tag. Machines refer to it by name.
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

// Space is a group of VLANs.
type Space struct {
	ID                int
	Name, Description string
}

// Fabric is a group of VLANs that can reach each other.
type Fabric struct {
	ID        int
	Name      string
	ClassType *string
}

// VLAN is a layer-2 network.
type VLAN struct {
	ID, VID, FabricID int
	// SpaceID is nil for the space "undefined".
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
	// Gateway is empty if there is none.
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

// Address is an address outside of the machines' links: one that a user has reserved, or one of a DNS record or
// controller.
type Address struct {
	ID   int
	IP   string
	Type int
	// SubnetID is nil if no subnet contains the address.
	SubnetID *int
	Owner    string
	// Created is the creation time; Updated is the time of the last address change.
	Created, Updated time.Time
	// Interfaces is part of the response, unchanged from the seed.
	Interfaces []any
}

// DNSResource is a name in a domain with addresses.
type DNSResource struct {
	ID       int
	Name     string
	DomainID int
	TTL      *int
	// IPs are the addresses. Each one has a row in Address or is the address of a machine's link.
	IPs []string
}

// DNSRecord is a record of a type other than an address.
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
	// FileType is the file type of an uploaded image, such as ddgz; empty for synced images.
	FileType string
	// Sets is part of the response for a single image, unchanged from the seed. The list does not have it.
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

// NamedToken is an API key and its name.
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
	// Type is the description of the event type, Description the text of the event.
	Type, Description string
}

// Setting is a configuration value of the site.
type Setting struct {
	Name  string
	Value any
}

// Counter stores the last number that Next returned.
type Counter struct {
	Name string
	Last int
}

// Node is a controller or a device. Its response is unchanged from the seed.
type Node struct {
	SystemID string
	// Kind is rackcontrollers, regioncontrollers or devices.
	Kind string
	Doc  map[string]any
}
