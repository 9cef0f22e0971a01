// SPDX-License-Identifier: Apache-2.0

package maas

import "encoding/json"

// Machine is a machine in the JSON format of MAAS. Fields of other MAAS versions are ignored.
type Machine struct {
	SystemID       string     `json:"system_id"`
	Hostname       string     `json:"hostname"`
	FQDN           string     `json:"fqdn"`
	Description    string     `json:"description"`
	Architecture   string     `json:"architecture"`
	Status         Status     `json:"status"`
	StatusName     string     `json:"status_name"`
	StatusAction   string     `json:"status_action"`
	StatusMessage  string     `json:"status_message"`
	Owner          string     `json:"owner"`
	OwnerData      StringMap  `json:"owner_data"`
	Annotations    StringMap  `json:"workload_annotations"`
	Locked         bool       `json:"locked"`
	PowerState     PowerState `json:"power_state"`
	PowerType      string     `json:"power_type"`
	BIOSBootMethod string     `json:"bios_boot_method"`
	// CPUCount is the number of cores. CPUSpeed is in MHz, MemoryMiB in MiB. StorageMB is the size of all physical disks
	// in MB (10^6 bytes).
	CPUCount  int     `json:"cpu_count"`
	CPUSpeed  int     `json:"cpu_speed"`
	MemoryMiB int     `json:"memory"`
	StorageMB float64 `json:"storage"`
	// SwapSize is in bytes; nil means MAAS's default.
	SwapSize             *int64             `json:"swap_size"`
	OSystem              string             `json:"osystem"`
	DistroSeries         string             `json:"distro_series"`
	HWEKernel            string             `json:"hwe_kernel"`
	MinHWEKernel         string             `json:"min_hwe_kernel"`
	EphemeralDeploy      bool               `json:"ephemeral_deploy"`
	ErrorDescription     string             `json:"error_description"`
	Netboot              bool               `json:"netboot"`
	NodeType             int                `json:"node_type"`
	NodeTypeName         string             `json:"node_type_name"`
	Domain               Domain             `json:"domain"`
	Zone                 Zone               `json:"zone"`
	Pool                 Pool               `json:"pool"`
	Pod                  *Reference         `json:"pod"`
	Parent               *Reference         `json:"parent"`
	TagNames             []string           `json:"tag_names"`
	IPAddresses          []string           `json:"ip_addresses"`
	BootInterface        *Interface         `json:"boot_interface"`
	Interfaces           []Interface        `json:"interface_set"`
	BootDisk             *BlockDevice       `json:"boot_disk"`
	BlockDevices         []BlockDevice      `json:"blockdevice_set"`
	PhysicalBlockDevices []BlockDevice      `json:"physicalblockdevice_set"`
	VirtualBlockDevices  []BlockDevice      `json:"virtualblockdevice_set"`
	ConstraintsByType    ConstraintsByType  `json:"constraints_by_type"`
	HardwareUUID         string             `json:"hardware_uuid"`
	HardwareInfo         StringMap          `json:"hardware_info"`
	DefaultGateways      map[string]Gateway `json:"default_gateways"`
	EnableHWSync         bool               `json:"enable_hw_sync"`
	ResourceURI          string             `json:"resource_uri"`
}

// Gateway is a default gateway of a machine, for one address family.
type Gateway struct {
	GatewayIP string `json:"gateway_ip"`
	LinkID    *int   `json:"link_id"`
}

// Reference refers to another object. The kind determines which field identifies it.
type Reference struct {
	ID          *int   `json:"id,omitempty"`
	Name        string `json:"name,omitempty"`
	SystemID    string `json:"system_id,omitempty"`
	ResourceURI string `json:"resource_uri,omitempty"`
	Incomplete  bool   `json:"__incomplete__,omitempty"`
}

// ConstraintsByType holds the IDs that satisfy each labelled constraint, in the answer to an allocation.
type ConstraintsByType struct {
	Storage    map[string][]int `json:"storage,omitempty"`
	Interfaces map[string][]int `json:"interfaces,omitempty"`
}

// Interface is a network interface of a machine.
type Interface struct {
	ID            int    `json:"id"`
	Name          string `json:"name"`
	Type          string `json:"type"`
	Enabled       bool   `json:"enabled"`
	MACAddress    string `json:"mac_address"`
	VLAN          *VLAN  `json:"vlan"`
	EffectiveMTU  int    `json:"effective_mtu"`
	LinkConnected bool   `json:"link_connected"`
	// InterfaceSpeed and LinkSpeed are in Mbit/s; zero means unknown.
	InterfaceSpeed int                `json:"interface_speed"`
	LinkSpeed      int                `json:"link_speed"`
	Parents        []string           `json:"parents"`
	Children       []string           `json:"children"`
	Tags           []string           `json:"tags"`
	Links          []Link             `json:"links"`
	Discovered     []DiscoveredSubnet `json:"discovered"`
	// Params is an object, or the empty string.
	Params      json.RawMessage `json:"params,omitempty"`
	SystemID    string          `json:"system_id"`
	ResourceURI string          `json:"resource_uri"`
}

// Link connects an interface to a subnet.
type Link struct {
	ID        int     `json:"id"`
	Mode      string  `json:"mode"`
	Subnet    *Subnet `json:"subnet,omitempty"`
	IPAddress string  `json:"ip_address,omitempty"`
}

// DiscoveredSubnet is an address that MAAS observed on an interface and did not assign.
type DiscoveredSubnet struct {
	Subnet    *Subnet `json:"subnet,omitempty"`
	IPAddress string  `json:"ip_address,omitempty"`
}

// BlockDevice is a disk of a machine.
type BlockDevice struct {
	ID       int    `json:"id"`
	SystemID string `json:"system_id"`
	Name     string `json:"name"`
	Type     string `json:"type"`
	Path     string `json:"path"`
	IDPath   string `json:"id_path"`
	Model    string `json:"model"`
	Serial   string `json:"serial"`
	// Size, AvailableSize, UsedSize and BlockSize are in bytes.
	Size               int64       `json:"size"`
	BlockSize          int64       `json:"block_size"`
	AvailableSize      int64       `json:"available_size"`
	UsedSize           int64       `json:"used_size"`
	UsedFor            string      `json:"used_for"`
	Tags               []string    `json:"tags"`
	PartitionTableType string      `json:"partition_table_type"`
	Partitions         []Partition `json:"partitions"`
	ResourceURI        string      `json:"resource_uri"`
}

// Partition is a partition of a disk.
type Partition struct {
	ID          int      `json:"id"`
	UUID        string   `json:"uuid"`
	Path        string   `json:"path"`
	Type        string   `json:"type"`
	Size        int64    `json:"size"`
	Bootable    bool     `json:"bootable"`
	UsedFor     string   `json:"used_for"`
	Tags        []string `json:"tags"`
	ResourceURI string   `json:"resource_uri"`
}

// PowerParameters are the parameters of a machine's power driver, including secrets.
type PowerParameters map[string]any

// StringMap is a JSON object of strings; for a value of a different type, it has the JSON text.
type StringMap map[string]string

// UnmarshalJSON decodes an object with values of any type, or null.
func (m *StringMap) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = nil
	if raw == nil {
		return nil
	}
	*m = make(StringMap, len(raw))
	for key, value := range raw {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		(*m)[key] = text
	}
	return nil
}
