// SPDX-License-Identifier: Apache-2.0

// Package status holds the life of a MAAS node: its 23 statuses, the moves
// between them that the server allows, and which status each operation needs.
package status

import "fmt"

// Status is the number of a node status on the wire.
type Status int

// The statuses, with the numbers that the server prints.
const (
	New Status = iota
	Commissioning
	FailedCommissioning
	Missing
	Ready
	Reserved
	Deployed
	Retired
	Broken
	Deploying
	Allocated
	FailedDeployment
	Releasing
	FailedReleasing
	DiskErasing
	FailedDiskErasing
	RescueMode
	EnteringRescueMode
	FailedEnteringRescueMode
	ExitingRescueMode
	FailedExitingRescueMode
	Testing
	FailedTesting
)

// labels holds, by status, what status_name prints and the word that filters take.
var labels = [...]struct{ name, word string }{
	New:                      {"New", "new"},
	Commissioning:            {"Commissioning", "commissioning"},
	FailedCommissioning:      {"Failed commissioning", "failed_commissioning"},
	Missing:                  {"Missing", "missing"},
	Ready:                    {"Ready", "ready"},
	Reserved:                 {"Reserved", "reserved"},
	Deployed:                 {"Deployed", "deployed"},
	Retired:                  {"Retired", "retired"},
	Broken:                   {"Broken", "broken"},
	Deploying:                {"Deploying", "deploying"},
	Allocated:                {"Allocated", "allocated"},
	FailedDeployment:         {"Failed deployment", "failed_deployment"},
	Releasing:                {"Releasing", "releasing"},
	FailedReleasing:          {"Releasing failed", "failed_releasing"},
	DiskErasing:              {"Disk erasing", "disk_erasing"},
	FailedDiskErasing:        {"Failed disk erasing", "failed_disk_erasing"},
	RescueMode:               {"Rescue mode", "rescue_mode"},
	EnteringRescueMode:       {"Entering rescue mode", "entering_rescue_mode"},
	FailedEnteringRescueMode: {"Failed to enter rescue mode", "failed_entering_rescue_mode"},
	ExitingRescueMode:        {"Exiting rescue mode", "exiting_rescue_mode"},
	FailedExitingRescueMode:  {"Failed to exit rescue mode", "failed_exiting_rescue_mode"},
	Testing:                  {"Testing", "testing"},
	FailedTesting:            {"Failed testing", "failed_testing"},
}

// All returns every status in the order of its number.
func All() []Status {
	all := make([]Status, len(labels))
	for i := range labels {
		all[i] = Status(i)
	}
	return all
}

// Valid reports whether the number is one that the server knows.
func (s Status) Valid() bool { return s >= 0 && int(s) < len(labels) }

// String returns what status_name prints.
func (s Status) String() string {
	if !s.Valid() {
		return fmt.Sprintf("Unknown (%d)", int(s))
	}
	return labels[s].name
}

// ByWord finds a status by the word that list filters take, such as "ready".
func ByWord(word string) (Status, bool) {
	for i, label := range labels {
		if label.word == word {
			return Status(i), true
		}
	}
	return 0, false
}

// In reports whether s is one of the others.
func (s Status) In(others ...Status) bool {
	for _, other := range others {
		if s == other {
			return true
		}
	}
	return false
}

// Simple is the coarse class that the filter simple_status takes.
func (s Status) Simple() string {
	for class, members := range simpleClasses {
		if s.In(members...) {
			return class
		}
	}
	return "other"
}

var simpleClasses = map[string][]Status{
	"failed": {
		FailedCommissioning, FailedDeployment, FailedDiskErasing, FailedEnteringRescueMode,
		FailedExitingRescueMode, FailedReleasing, FailedTesting,
	},
	"new":           {New},
	"commissioning": {Commissioning},
	"testing":       {Testing},
	"ready":         {Ready},
	"allocated":     {Allocated},
	"deployed":      {Deployed, Deploying},
	"rescue":        {RescueMode, EnteringRescueMode, ExitingRescueMode},
	"releasing":     {Releasing, DiskErasing},
	"broken":        {Broken},
}
