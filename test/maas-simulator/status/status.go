// SPDX-License-Identifier: Apache-2.0

// Package status defines the statuses of MAAS nodes: the 23 statuses, the transitions that MAAS allows, and the
// statuses that operations need.
package status

import "fmt"

// Status is the number of a node status in the API.
type Status int

// The statuses, with the numbers of the API.
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

// labels contains the status_name of each status and the word for filters.
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

// Valid reports whether the number is a status of MAAS.
func (s Status) Valid() bool { return s >= 0 && int(s) < len(labels) }

// String returns the status_name.
func (s Status) String() string {
	if !s.Valid() {
		return fmt.Sprintf("Unknown (%d)", int(s))
	}
	return labels[s].name
}

// ByWord returns the status with the word for list filters, such as "ready".
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

// Simple returns the class of the status for the filter simple_status.
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
