// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// Machine is a MAAS machine. What the simulator acts on has a field; all else
// that a seed says about it is kept in Extra and printed unchanged.
type Machine struct {
	// ID gives the order of lists; it is never printed.
	ID          int
	SystemID    string
	Hostname    string
	Description string
	DomainID    int
	// Architecture is for example "amd64/generic".
	Architecture string
	CPUCount     int
	// CPUSpeed is in MHz.
	CPUSpeed int
	// Memory is in MiB.
	Memory int64
	// SwapSize is in bytes; nil leaves it to the installer.
	SwapSize *int64
	ZoneID   int
	PoolID   int
	// Tags are names.
	Tags []string

	Status status.Status
	// Previous is the status before testing, rescue mode or a fault.
	Previous status.Status
	// StatusMessage and StatusAction come from the newest event of level INFO
	// or more; nil before there was one.
	StatusMessage, StatusAction *string
	// Commissioned says that commissioning passed once: release leads to Ready.
	Commissioned bool
	// ErrorDescription is the comment of mark_broken.
	ErrorDescription string

	// Owner is a user's name, "" when nobody owns the machine.
	Owner string
	// Annotations are the workload annotations, owner_data of old.
	Annotations map[string]string
	// AgentName is stored by allocate and deploy and never printed.
	AgentName string
	Locked    bool

	OSystem, Series, HWEKernel string
	// MinHWEKernel is nil until a deployment normalises it to "".
	MinHWEKernel *string
	Ephemeral    bool
	// Netboot says that the next boot is from the network.
	Netboot  bool
	UserData []byte
	// VMHost says that the deployment ends as a VM host.
	VMHost bool

	PowerType       string
	PowerState      string
	PowerParameters map[string]any

	// PodID is the VM host that composed the machine; nil for bare metal.
	PodID *int
	// VM is the instance on that host; nil for bare metal.
	VM *VM
	// Dynamic machines were composed by allocate and vanish on release.
	Dynamic bool

	Interfaces []Interface
	Disks      []Disk

	// Token is the machine's own credential for the metadata endpoint.
	Token Token
	// Task is what the simulator does with the machine over time.
	Task *Task
	// TaskSeq numbers the tasks, so that a late result of an old one is known.
	TaskSeq int

	Extra map[string]any
}

// Task is a chain of timed steps on one machine.
type Task struct {
	Name string
	Seq  int
	// Step counts the steps that are done.
	Step int
	// Due is when the next step is to happen; the zero time means it waits for
	// something from outside.
	Due time.Time
	// Deadline fails the task when it passes; the zero time means never.
	Deadline time.Time
}

// Next is when something happens to the task by itself; the zero time means never.
func (t *Task) Next() time.Time {
	if t.Due.IsZero() || !t.Deadline.IsZero() && t.Deadline.Before(t.Due) {
		return t.Deadline
	}
	return t.Due
}

// Interface is a network interface of a machine.
type Interface struct {
	ID       int
	Name     string
	Type     string // physical, bond, bridge, vlan
	MAC      string
	Enabled  bool
	VLANID   *int
	Parents  []string
	Children []string
	Tags     []string
	Links    []Link
	Params   any
	// Acquired bridges were made for an allocation and vanish on release.
	Acquired bool
	Extra    map[string]any
}

// Link joins an interface to a subnet.
type Link struct {
	ID int
	// Mode is auto, dhcp, static or link_up.
	Mode     string
	SubnetID *int
	// IP is empty while an auto link waits for a deployment.
	IP string
	// Since is when the address was given.
	Since time.Time
	// Gateway makes the subnet's gateway the machine's, before those of other links.
	Gateway bool
}

// virtual disks, such as RAIDs, are made of others and take no room of their own.
const virtual = "virtual"

// Disk is a block device of a machine.
type Disk struct {
	ID   int
	Name string
	// Type is physical or virtual.
	Type string
	// Size is in bytes.
	Size int64
	Tags []string
	// Pool is the id of the VM host's storage pool that holds the disk of a VM.
	Pool  string
	Extra map[string]any
}

// Token is an OAuth credential.
type Token struct {
	Consumer, Key, Secret string
}

// Clone copies what callers change in place; Extra values are shared.
func (m *Machine) Clone() *Machine {
	c := *m
	c.Tags = slices.Clone(m.Tags)
	c.Annotations = maps.Clone(m.Annotations)
	c.PowerParameters = maps.Clone(m.PowerParameters)
	c.Disks = slices.Clone(m.Disks)
	c.Extra = maps.Clone(m.Extra)
	c.Interfaces = slices.Clone(m.Interfaces)
	for i := range c.Interfaces {
		c.Interfaces[i].Links = slices.Clone(c.Interfaces[i].Links)
		c.Interfaces[i].Tags = slices.Clone(c.Interfaces[i].Tags)
	}
	if m.Task != nil {
		task := *m.Task
		c.Task = &task
	}
	if m.VM != nil {
		vm := *m.VM
		c.VM = &vm
	}
	return &c
}

// HasNetwork reports whether a link could give the machine an address.
func (m *Machine) HasNetwork() bool {
	for _, nic := range m.Interfaces {
		for _, link := range nic.Links {
			if nic.Enabled && link.Mode != "link_up" {
				return true
			}
		}
	}
	return false
}

// Diskless reports whether there is nothing to install on.
func (m *Machine) Diskless() bool { return len(m.Disks) == 0 }

// BootInterface is the first physical interface; nil when there is none.
func (m *Machine) BootInterface() *Interface {
	if len(m.Interfaces) == 0 {
		return nil
	}
	if id, ok := Number(m.Extra["boot_interface"]); ok {
		for i := range m.Interfaces {
			if m.Interfaces[i].ID == id {
				return &m.Interfaces[i]
			}
		}
	}
	return &m.Interfaces[0]
}

// IPs lists the addresses of the links in their order.
func (m *Machine) IPs() []string {
	ips := []string{}
	for h := range m.holdings() {
		ips = append(ips, h.Link.IP)
	}
	return ips
}

// HasTags reports whether the machine carries every one of the tags.
func (m *Machine) HasTags(tags ...string) bool {
	for _, tag := range tags {
		if !slices.Contains(m.Tags, tag) {
			return false
		}
	}
	return true
}

// StorageMB is the size of the physical disks in decimal megabytes.
func (m *Machine) StorageMB() float64 {
	var bytes int64
	for _, disk := range m.Disks {
		if disk.Type == "physical" {
			bytes += disk.Size
		}
	}
	return float64(bytes/100000) / 10
}
