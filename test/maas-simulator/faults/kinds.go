// SPDX-License-Identifier: Apache-2.0

package faults

import "slices"

// Kind is what goes wrong.
type Kind string

// The kinds of faults that hit requests.
const (
	// Error answers with Status instead of doing what was asked.
	Error Kind = "error"
	// Proxy answers instead of MAAS, as what stands before it would: a page of
	// HTML with Status, 403 unless told, and none of MAAS's own headers.
	Proxy Kind = "proxy"
	// LostAnswer does what was asked and then answers with Status.
	LostAnswer Kind = "lost-answer"
	// Latency waits for Delay before doing what was asked.
	Latency Kind = "latency"
	// Drop closes the connection without doing what was asked.
	Drop Kind = "drop"
	// DropAfter does what was asked and closes the connection in the middle of
	// the answer.
	DropAfter Kind = "drop-after"
)

// The kinds of faults that hit machines.
const (
	// DeployFails fails the next deployments at the installation.
	DeployFails Kind = "deploy-fails"
	// DeployReverts accepts a deployment, fails it with Status after it was
	// stored, and leaves the machine Allocated with the image it was given.
	DeployReverts Kind = "deploy-reverts"
	// BootHangs lets the deployed system never fetch its user-data.
	BootHangs Kind = "boot-hangs"
	// GoesSilent gives the deployed system an empty user-data: it is Deployed, and
	// is never heard of by those who wait for what the user-data was to do.
	GoesSilent Kind = "goes-silent"
	// DiskEmpty has a Deployed machine find no system when it is started: it is
	// on, and nothing runs until it is installed anew.
	DiskEmpty Kind = "disk-empty"
	// PowerError fails power actions and queries, and MAAS is told.
	PowerError Kind = "power-error"
	// DeadBMC swallows power actions, and nobody tells MAAS: what waits for the
	// power waits until its time-out, or for ever where MAAS has none.
	DeadBMC Kind = "dead-bmc"
	// ReleaseFails fails releases.
	ReleaseFails Kind = "release-fails"
	// SlowRelease adds Delay to releases.
	SlowRelease Kind = "slow-release"
	// CommissionFails fails commissioning.
	CommissionFails Kind = "commission-fails"
	// ComposeFails fails the host when a VM is composed; the rule's machine is the
	// name or id of the VM host.
	ComposeFails Kind = "compose-fails"
	// EraseFails fails disk erasing.
	EraseFails Kind = "erase-fails"
	// TestFails fails hardware tests, which leaves the machine Failed testing,
	// also one that was Deployed.
	TestFails Kind = "test-fails"
	// BrokenOnDeploy turns a machine Broken while it deploys.
	BrokenOnDeploy Kind = "broken-on-deploy"
)

var (
	requestKinds = []Kind{Error, Proxy, LostAnswer, Latency, Drop, DropAfter}
	machineKinds = []Kind{
		DeployFails, DeployReverts, BootHangs, GoesSilent, DiskEmpty, PowerError, DeadBMC, ReleaseFails, SlowRelease, CommissionFails, EraseFails,
		TestFails, BrokenOnDeploy, ComposeFails,
	}
)

// Kinds lists every kind, those that hit requests first.
func Kinds() []Kind { return slices.Concat(requestKinds, machineKinds) }
