// SPDX-License-Identifier: Apache-2.0

package status

import "fmt"

// resettable are the statuses that a test may return to besides the one that
// it started from.
var resettable = []Status{
	FailedCommissioning, FailedDeployment, FailedDiskErasing, FailedEnteringRescueMode, FailedExitingRescueMode, FailedReleasing,
}

// moves holds the legal moves: moves[from] lists every status that may follow.
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

// CanMove reports whether the server lets a node go from one status to another.
// Staying is always allowed.
func CanMove(from, to Status) bool {
	return from == to || to.In(moves[from]...)
}

// Move says why a move is refused, in the server's words; nil means it is legal.
func Move(from, to Status) error {
	if CanMove(from, to) {
		return nil
	}
	return fmt.Errorf("Invalid transition: %s -> %s.", from, to)
}

// failures holds where a node goes when what it is doing fails.
var failures = map[Status]Status{
	Commissioning:      FailedCommissioning,
	Deploying:          FailedDeployment,
	Releasing:          FailedReleasing,
	DiskErasing:        FailedDiskErasing,
	EnteringRescueMode: FailedEnteringRescueMode,
	ExitingRescueMode:  FailedExitingRescueMode,
	Testing:            FailedTesting,
}

// Failed returns the status that follows a failure; false when the node is not
// doing anything that can fail.
func (s Status) Failed() (Status, bool) {
	failed, ok := failures[s]
	return failed, ok
}

// aborts holds where an abort leads; Testing goes back to what it was before.
var aborts = map[Status]Status{
	Commissioning: New,
	Deploying:     Allocated,
	DiskErasing:   FailedDiskErasing,
}

// Aborted returns the status that follows an abort, given the one before; false
// when there is nothing to abort.
func (s Status) Aborted(previous Status) (Status, bool) {
	if s == Testing {
		return previous, true
	}
	to, ok := aborts[s]
	return to, ok
}

// Releasable reports whether a release does something in this status.
func (s Status) Releasable() bool {
	return s.In(Allocated, Reserved, Broken, Deploying, Deployed, FailedDeployment, FailedDiskErasing, FailedReleasing)
}

// NetworkConfigurable reports whether interfaces may be written.
func (s Status) NetworkConfigurable() bool {
	return s.In(New, Ready, FailedTesting, Allocated, Broken)
}
