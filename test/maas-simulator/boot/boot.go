// SPDX-License-Identifier: Apache-2.0

// Package boot defines the interface between the MAAS simulator and its boot backends. The simulator decides when a
// machine is installed, powered and erased. A backend does this to a fake machine.
package boot

import (
	"context"
	"net/netip"
)

// State is the power state a backend reports for a machine.
type State string

const (
	// Off means that the machine draws no power.
	Off State = "off"
	// On means that the machine is powered, even if its system is not up yet.
	On State = "on"
)

// Disk is a block device of a machine.
type Disk struct {
	// Name is the kernel's name of the device, for example "sda".
	Name string
	// Bytes is the size of the device in bytes.
	Bytes int64
}

// Spec contains what a backend needs to install and boot one machine. It is complete in every call, so a backend need
// not store earlier specs.
type Spec struct {
	// SystemID is the machine's system ID in MAAS, six characters.
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
	// MetadataURL is the URL of the machine's metadata, with a trailing slash, for example
	// http://172.30.240.1:5240/MAAS/metadata/.
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
	// Ephemeral makes the machine run from memory: Install is not called.
	Ephemeral bool
	// Blank deletes the content of the disks when the machine starts. The machine is then on, but no system runs until the
	// next Install, even after further starts.
	Blank bool
	// CPUs is the number of CPU cores.
	CPUs int
	// MemoryMiB is the size of the memory in MiB.
	MemoryMiB int64
	// Disks are the physical block devices.
	Disks []Disk
}

// Backend installs, powers and erases machines. Every method may be called again after an error or an interruption,
// even by another process.
type Backend interface {
	// Install writes the image to the disks, as curtin does in a deployment.
	Install(ctx context.Context, spec Spec) error
	// PowerOn starts the machine from its disks, or from memory if the spec is ephemeral. It returns when the power is on,
	// before the system is up.
	PowerOn(ctx context.Context, spec Spec) error
	// PowerOff stops the machine. It returns no error if the machine is off or unknown.
	PowerOff(ctx context.Context, systemID string) error
	// Power returns the machine's power state; an unknown machine is Off.
	Power(ctx context.Context, systemID string) (State, error)
	// Erase deletes the content of the disks. It returns no error if the machine is unknown.
	Erase(ctx context.Context, systemID string) error
}
