// SPDX-License-Identifier: Apache-2.0

package faults

import "slices"

// Kind is the kind of a fault.
type Kind string

// The kinds of faults of requests.
const (
	// Error responds with Status and does not run the operation.
	Error Kind = "error"
	// Proxy responds like a proxy in front of MAAS: an HTML page without the headers of MAAS. Its status is Status, or 403
	// if Status is 0.
	Proxy Kind = "proxy"
	// LostAnswer runs the operation and then responds with Status.
	LostAnswer Kind = "lost-answer"
	// Latency waits for Delay and then runs the operation.
	Latency Kind = "latency"
	// Drop closes the connection and does not run the operation.
	Drop Kind = "drop"
	// DropAfter runs the operation and closes the connection in the middle of the response.
	DropAfter Kind = "drop-after"
)

// The kinds of faults of machines.
const (
	// DeployFails fails deployments during the installation.
	DeployFails Kind = "deploy-fails"
	// DeployReverts fails a deployment with Status after MAAS has stored the image. The machine stays Allocated with that
	// image.
	DeployReverts Kind = "deploy-reverts"
	// BootHangs prevents the deployed system from fetching its user-data.
	BootHangs Kind = "boot-hangs"
	// GoesSilent gives the deployed system an empty user-data. The machine becomes Deployed, but nothing in the user-data
	// runs.
	GoesSilent Kind = "goes-silent"
	// DiskEmpty deletes the content of the disks of a Deployed machine when it starts. The machine is on, but no
	// system runs until the next installation.
	DiskEmpty Kind = "disk-empty"
	// PowerError fails power actions and queries with an error in MAAS.
	PowerError Kind = "power-error"
	// DeadBMC ignores power actions without an error in MAAS. An operation that waits for the power state waits until its
	// timeout, or indefinitely if MAAS has no timeout.
	DeadBMC Kind = "dead-bmc"
	// ReleaseFails fails releases.
	ReleaseFails Kind = "release-fails"
	// SlowRelease adds Delay to releases.
	SlowRelease Kind = "slow-release"
	// CommissionFails fails commissioning.
	CommissionFails Kind = "commission-fails"
	// ComposeFails makes a VM host fail to compose VMs. The rule's machine is the name or ID of the VM host.
	ComposeFails Kind = "compose-fails"
	// EraseFails fails disk erasing.
	EraseFails Kind = "erase-fails"
	// TestFails fails hardware tests. The machine, even a Deployed one, gets the status Failed testing.
	TestFails Kind = "test-fails"
	// BrokenOnDeploy sets a machine Broken while it deploys.
	BrokenOnDeploy Kind = "broken-on-deploy"
)

var (
	requestKinds = []Kind{Error, Proxy, LostAnswer, Latency, Drop, DropAfter}
	machineKinds = []Kind{
		DeployFails, DeployReverts, BootHangs, GoesSilent, DiskEmpty, PowerError, DeadBMC, ReleaseFails, SlowRelease, CommissionFails, EraseFails,
		TestFails, BrokenOnDeploy, ComposeFails,
	}
)

// Kinds returns all kinds of faults. Faults of requests come first.
func Kinds() []Kind { return slices.Concat(requestKinds, machineKinds) }
