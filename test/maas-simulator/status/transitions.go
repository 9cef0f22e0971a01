// SPDX-License-Identifier: Apache-2.0

package status

import "fmt"

// resettable are the failure statuses that a node may return to after a test.
var resettable = []Status{
	FailedCommissioning, FailedDeployment, FailedDiskErasing, FailedEnteringRescueMode, FailedExitingRescueMode, FailedReleasing,
}

// moves contains the allowed transitions: moves[from] lists the statuses that may follow.
var moves = map[Status][]Status{
	New:                      {Commissioning, Testing, Missing, Ready, Retired, Broken, EnteringRescueMode},
	Commissioning:            {FailedCommissioning, Ready, Retired, Missing, New, Broken, Testing},
	FailedCommissioning:      {Commissioning, Missing, Retired, Broken, EnteringRescueMode, Testing},
	Ready:                    {Allocated, Reserved, Commissioning, Testing, Retired, Missing, Broken, EnteringRescueMode},
	Reserved:                 {Ready, Allocated, Retired, Missing, Broken, DiskErasing, Releasing, EnteringRescueMode, Testing},
	Allocated:                {Ready, Deploying, Releasing, DiskErasing, Broken, Retired, Missing, EnteringRescueMode, Testing},
	Deploying:                {Deployed, FailedDeployment, Allocated, Ready, Releasing, DiskErasing, Broken, Missing},
	Deployed:                 {Allocated, Ready, Releasing, DiskErasing, Broken, Missing, EnteringRescueMode, Testing},
	FailedDeployment:         {Allocated, Ready, Releasing, DiskErasing, Broken, Missing, EnteringRescueMode, Testing},
	Releasing:                {Ready, New, Allocated, Reserved, Deployed, FailedDeployment, Broken, Missing, FailedDiskErasing, FailedReleasing},
	FailedReleasing:          {Releasing, DiskErasing, Ready, Broken, Testing},
	DiskErasing:              {FailedDiskErasing, Ready, Releasing, DiskErasing, Broken},
	FailedDiskErasing:        {DiskErasing, Releasing, Allocated, Ready, Broken, EnteringRescueMode, Testing},
	Broken:                   {Commissioning, Ready, Deployed, Releasing, DiskErasing, EnteringRescueMode, Testing},
	Missing:                  {New, Ready, Allocated, Commissioning, Broken, EnteringRescueMode, Testing},
	Retired:                  {New, Ready, Missing, Broken, EnteringRescueMode, Testing},
	Testing:                  append([]Status{New, Ready, Reserved, Allocated, Deployed, Broken, FailedTesting, Missing, Retired, RescueMode}, resettable...),
	FailedTesting:            {Commissioning, Ready, Deployed, Broken, Missing, EnteringRescueMode, Testing},
	EnteringRescueMode:       {RescueMode, FailedEnteringRescueMode, ExitingRescueMode, Ready, Deployed, Broken},
	RescueMode:               {ExitingRescueMode, Broken, Testing},
	FailedEnteringRescueMode: {EnteringRescueMode, ExitingRescueMode, Broken, Testing},
	ExitingRescueMode: {
		FailedExitingRescueMode, New, Ready, Deployed, Allocated, Reserved, Broken, Missing, Retired,
		FailedCommissioning, FailedDeployment, FailedDiskErasing, FailedTesting,
	},
	FailedExitingRescueMode: {EnteringRescueMode, ExitingRescueMode, Broken, Testing},
}

// CanMove reports whether MAAS allows a transition. Staying in a status is always allowed.
func CanMove(from, to Status) bool {
	return from == to || to.In(moves[from]...)
}

// Move returns MAAS's error for a transition that is not allowed; nil if it is allowed.
func Move(from, to Status) error {
	if CanMove(from, to) {
		return nil
	}
	return fmt.Errorf("Invalid transition: %s -> %s.", from, to)
}

// failures maps transient statuses to the statuses after a failure.
var failures = map[Status]Status{
	Commissioning:      FailedCommissioning,
	Deploying:          FailedDeployment,
	Releasing:          FailedReleasing,
	DiskErasing:        FailedDiskErasing,
	EnteringRescueMode: FailedEnteringRescueMode,
	ExitingRescueMode:  FailedExitingRescueMode,
	Testing:            FailedTesting,
}

// Failed returns the status after a failure; false if the status is not transient.
func (s Status) Failed() (Status, bool) {
	failed, ok := failures[s]
	return failed, ok
}

// aborts maps statuses to those after an abort. Testing is not in it, because it returns to the previous status.
var aborts = map[Status]Status{
	Commissioning: New,
	Deploying:     Allocated,
	DiskErasing:   FailedDiskErasing,
}

// Aborted returns the status after an abort, given the previous one; false if there is nothing to abort.
func (s Status) Aborted(previous Status) (Status, bool) {
	if s == Testing {
		return previous, true
	}
	to, ok := aborts[s]
	return to, ok
}

// Releasable reports whether a machine with this status can be released.
func (s Status) Releasable() bool {
	return s.In(Allocated, Reserved, Broken, Deploying, Deployed, FailedDeployment, FailedDiskErasing, FailedReleasing)
}

// NetworkConfigurable reports whether interfaces may be configured in this status.
func (s Status) NetworkConfigurable() bool {
	return s.In(New, Ready, FailedTesting, Allocated, Broken)
}
