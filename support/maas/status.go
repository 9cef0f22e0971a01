// SPDX-License-Identifier: Apache-2.0

package maas

import "strconv"

// Status is the state of a machine. A newer MAAS may send numbers that this package does not know.
type Status int

// The states of a machine, with MAAS's own numbers.
const (
	StatusNew Status = iota
	StatusCommissioning
	StatusFailedCommissioning
	StatusMissing
	StatusReady
	StatusReserved
	StatusDeployed
	StatusRetired
	StatusBroken
	StatusDeploying
	StatusAllocated
	StatusFailedDeployment
	StatusReleasing
	StatusReleasingFailed
	StatusDiskErasing
	StatusFailedDiskErasing
	StatusRescueMode
	StatusEnteringRescueMode
	StatusFailedToEnterRescueMode
	StatusExitingRescueMode
	StatusFailedToExitRescueMode
	StatusTesting
	StatusFailedTesting
)

// statusText holds the name in answers and the word in filters of each state.
var statusText = [...]struct{ name, word string }{
	StatusNew:                     {"New", "new"},
	StatusCommissioning:           {"Commissioning", "commissioning"},
	StatusFailedCommissioning:     {"Failed commissioning", "failed_commissioning"},
	StatusMissing:                 {"Missing", "missing"},
	StatusReady:                   {"Ready", "ready"},
	StatusReserved:                {"Reserved", "reserved"},
	StatusDeployed:                {"Deployed", "deployed"},
	StatusRetired:                 {"Retired", "retired"},
	StatusBroken:                  {"Broken", "broken"},
	StatusDeploying:               {"Deploying", "deploying"},
	StatusAllocated:               {"Allocated", "allocated"},
	StatusFailedDeployment:        {"Failed deployment", "failed_deployment"},
	StatusReleasing:               {"Releasing", "releasing"},
	StatusReleasingFailed:         {"Releasing failed", "failed_releasing"},
	StatusDiskErasing:             {"Disk erasing", "disk_erasing"},
	StatusFailedDiskErasing:       {"Failed disk erasing", "failed_disk_erasing"},
	StatusRescueMode:              {"Rescue mode", "rescue_mode"},
	StatusEnteringRescueMode:      {"Entering rescue mode", "entering_rescue_mode"},
	StatusFailedToEnterRescueMode: {"Failed to enter rescue mode", "failed_entering_rescue_mode"},
	StatusExitingRescueMode:       {"Exiting rescue mode", "exiting_rescue_mode"},
	StatusFailedToExitRescueMode:  {"Failed to exit rescue mode", "failed_exiting_rescue_mode"},
	StatusTesting:                 {"Testing", "testing"},
	StatusFailedTesting:           {"Failed testing", "failed_testing"},
}

// Statuses returns every state that this package knows.
func Statuses() []Status {
	all := make([]Status, len(statusText))
	for i := range all {
		all[i] = Status(i)
	}
	return all
}

// Known reports whether this package knows the state.
func (s Status) Known() bool { return s >= 0 && int(s) < len(statusText) }

// String returns the name that MAAS prints, e.g. "Failed deployment".
func (s Status) String() string {
	if !s.Known() {
		return "Status " + strconv.Itoa(int(s))
	}
	return statusText[s].name
}

// Word returns the spelling of the state in the filters of MAAS, e.g. "failed_deployment".
func (s Status) Word() string {
	if !s.Known() {
		return strconv.Itoa(int(s))
	}
	return statusText[s].word
}

// PowerState is the last power state that MAAS observed on a machine.
type PowerState string

// The power states. Unknown is usual for machines whose power MAAS cannot query.
const (
	PowerOn      PowerState = "on"
	PowerOff     PowerState = "off"
	PowerUnknown PowerState = "unknown"
	PowerError   PowerState = "error"
)

// PowerTypeManual is the power type of machines that people switch on and off by hand.
const PowerTypeManual = "manual"
