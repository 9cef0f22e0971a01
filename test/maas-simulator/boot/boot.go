// SPDX-License-Identifier: Apache-2.0

// Package boot is the edge between the MAAS simulator, which decides when a
// machine is installed, powered and erased, and whatever stands in for the
// metal.
package boot

import (
	"context"
	"net/netip"
)

// State is the power state a backend reports for a machine.
type State string

const (
	// Off says the machine draws no power.
	Off State = "off"
	// On says the machine is powered, whether or not its system is up yet.
	On State = "on"
)

// Disk is a block device of a machine.
type Disk struct {
	// Name is the kernel's name of the device, for example "sda".
	Name string
	// Bytes is the size of the device in bytes.
	Bytes int64
}

// Spec is what a backend needs to install and boot one machine. It is complete
// at every call: a backend need not remember an earlier one.
type Spec struct {
	// SystemID is MAAS's identity of the machine, six characters.
	SystemID string
	// Hostname is the machine's name without its domain.
	Hostname string
	// Domain is the DNS domain of the machine.
	Domain string
	// MAC is the address of the boot interface.
	MAC string
	// Addresses are the boot interface's addresses with their prefix lengths.
	Addresses []netip.Prefix
	// Gateway is the default gateway; the zero Addr means none.
	Gateway netip.Addr
	// Nameservers are the DNS servers of the machine's subnet.
	Nameservers []netip.Addr
	// MetadataURL is where the machine finds its metadata, with a trailing
	// slash, for example http://172.30.240.1:5240/MAAS/metadata/.
	MetadataURL string
	// ConsumerKey, TokenKey and TokenSecret are the machine's own OAuth
	// credentials for the metadata endpoint.
	ConsumerKey, TokenKey, TokenSecret string
	// OSystem and Series name the image, for example "custom" and
	// "kubernetes-node".
	OSystem, Series string
	// Architecture is the image's architecture, for example "amd64/generic".
	Architecture string
	// Zone is the name of the machine's physical zone.
	Zone string
	// Ephemeral asks to run from memory: Install is not called.
	Ephemeral bool
	// Blank has what the disks hold be gone when the machine is started: it is on,
	// and nothing runs, also at later starts, until Install.
	Blank bool
	// CPUs is the number of CPU cores.
	CPUs int
	// MemoryMiB is the size of the memory in MiB.
	MemoryMiB int64
	// Disks are the physical block devices.
	Disks []Disk
}

// Backend stands in for the metal. Every method may be called again after it
// failed or was cut short, also by a later process.
type Backend interface {
	// Install writes the image to the disks: curtin's part of a deployment.
	Install(ctx context.Context, spec Spec) error
	// PowerOn starts the machine from its disks, or from memory when the spec
	// is ephemeral; it returns when the power is on, before the system is up.
	PowerOn(ctx context.Context, spec Spec) error
	// PowerOff stops the machine; one that is off or unknown is no error.
	PowerOff(ctx context.Context, systemID string) error
	// Power reports the machine's power; an unknown machine is Off.
	Power(ctx context.Context, systemID string) (State, error)
	// Erase forgets what the disks hold; an unknown machine is no error.
	Erase(ctx context.Context, systemID string) error
}
