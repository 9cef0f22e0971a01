// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// Machine is a MAAS machine. Data that the simulator uses has fields. Extra contains all other data of the seed; the
// response has it unchanged.
type Machine struct {
	// ID determines the order of lists. Responses do not contain it.
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
	// SwapSize is in bytes; nil means that the installer decides.
	SwapSize *int64
	ZoneID   int
	PoolID   int
	// Tags are the names of tags.
	Tags []string

	Status status.Status
	// Previous is the status before testing, rescue mode or a fault.
	Previous status.Status
	// StatusMessage and StatusAction are from the latest event of level INFO or above; nil if there was none.
	StatusMessage, StatusAction *string
	// Commissioned means that the machine has passed commissioning. A release then leads to Ready.
	Commissioned bool
	// ErrorDescription is the comment of mark_broken.
	ErrorDescription string

	// Owner is the name of a user; empty if the machine has no owner.
	Owner string
	// Annotations are the workload annotations, formerly called owner_data.
	Annotations map[string]string
	// AgentName is set by allocate and deploy. Responses do not contain it.
	AgentName string
	Locked    bool

	OSystem, Series, HWEKernel string
	// MinHWEKernel is nil until a deployment sets it to "".
	MinHWEKernel *string
	Ephemeral    bool
	// Netboot means that the machine boots from the network next time.
	Netboot  bool
	UserData []byte
	// VMHost means that the deployment creates a VM host.
	VMHost bool

	PowerType       string
	PowerState      string
	PowerParameters map[string]any

	// PodID is the ID of the VM host that composed the machine; nil for a physical machine.
	PodID *int
	// VM is the instance on that host; nil for a physical machine.
	VM *VM
	// Dynamic means that allocate composed the machine, so that a release deletes it.
	Dynamic bool

	Interfaces []Interface
	Disks      []Disk

	// Token is the machine's own credential for the metadata endpoint.
	Token Token
	// Task is the running operation of the machine; nil if there is none.
	Task *Task
	// TaskSeq numbers the tasks, so that a late result of an earlier task is ignored.
	TaskSeq int

	Extra map[string]any
}

// Task is a sequence of timed steps of one machine.
type Task struct {
	Name string
	Seq  int
	// Step is the number of completed steps.
	Step int
	// Due is the time of the next step. The zero time means that the step waits for an external event.
	Due time.Time
	// Deadline is the time at which the task fails; the zero time means no deadline.
	Deadline time.Time
}

// Next returns the time of the next step or of the deadline, whichever is first; the zero time means never.
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
	Type     string // physical, bond, bridge or vlan
	MAC      string
	Enabled  bool
	VLANID   *int
	Parents  []string
	Children []string
	Tags     []string
	Links    []Link
	Params   any
	// Acquired means that an allocation created the bridge, so that a release deletes it.
	Acquired bool
	Extra    map[string]any
}

// Link connects an interface to a subnet.
type Link struct {
	ID int
	// Mode is auto, dhcp, static or link_up.
	Mode     string
	SubnetID *int
	// IP is empty while an auto link has no address from a deployment.
	IP string
	// Since is the time when the address was assigned.
	Since time.Time
	// Gateway means that the subnet's gateway is the machine's default gateway. It has precedence over the gateways of
	// other links.
	Gateway bool
}

// virtual is the type of disks that consist of other disks, such as RAIDs. They use no storage themselves.
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
	// Pool is the ID of the VM host's storage pool with the disk of a VM.
	Pool  string
	Extra map[string]any
}

// Token is an OAuth credential.
type Token struct {
	Consumer, Key, Secret string
}

// Clone returns a copy. It copies the fields that callers change in place; the values of Extra are shared.
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

// HasNetwork reports whether the machine can get an address from one of its links.
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

// Diskless reports whether the machine has no disks.
func (m *Machine) Diskless() bool { return len(m.Disks) == 0 }

// BootInterface returns the interface that boot_interface names, or else the first interface; nil if there are no
// interfaces.
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

// IPs returns the addresses of the links in the order of the links.
func (m *Machine) IPs() []string {
	ips := []string{}
	for h := range m.holdings() {
		ips = append(ips, h.Link.IP)
	}
	return ips
}

// HasTags reports whether the machine has all of the tags.
func (m *Machine) HasTags(tags ...string) bool {
	for _, tag := range tags {
		if !slices.Contains(m.Tags, tag) {
			return false
		}
	}
	return true
}

// StorageMB returns the size of the physical disks in decimal megabytes.
func (m *Machine) StorageMB() float64 {
	var bytes int64
	for _, disk := range m.Disks {
		if disk.Type == "physical" {
			bytes += disk.Size
		}
	}
	return float64(bytes/100000) / 10
}
