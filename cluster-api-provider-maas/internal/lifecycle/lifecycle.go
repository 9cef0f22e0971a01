// SPDX-License-Identifier: Apache-2.0

// Package lifecycle maps each MAAS state of an allocated machine to an action, by a table.
//
//	            Acquired      Installing    Provisioned   Leaving
//	Allocated   deploy        try another   failed        release
//	Deploying   wait          wait          wait          release
//	Deployed    running       running       running       release
//	Ready       lost          lost          lost          gone
//	...
package lifecycle

import (
	"fmt"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// Stage is the progress of a MaasMachine with its machine.
type Stage int

// The stages. A machine is Leaving when its MaasMachine is deleted, and when its deployment failed and another machine
// will be tried.
const (
	Acquired Stage = iota
	Installing
	Provisioned
	Leaving
)

// Action is the next step for a machine.
type Action string

// The actions.
const (
	// Deploy asks MAAS to install the machine.
	Deploy Action = "Deploy"
	// Wait checks the machine again later.
	Wait Action = "Wait"
	// Running means that the machine is in its desired state.
	Running Action = "Running"
	// PowerOn means that the machine is deployed and powered off.
	PowerOn Action = "PowerOn"
	// Retry releases the machine and allocates another one.
	Retry Action = "Retry"
	// Failed is terminal; the machine is still allocated.
	Failed Action = "Failed"
	// Lost is terminal; the machine no longer belongs to the MaasMachine and must not be touched.
	Lost Action = "Lost"
	// Release asks MAAS to release the machine.
	Release Action = "Release"
	// Stuck means that a release failed. It is retried with a backoff and reported.
	Stuck Action = "Stuck"
	// Blocked is a state from which MAAS does not release machines, or a release that does not end. An administrator must
	// fix it.
	Blocked Action = "Blocked"
	// Gone means that nothing of the allocation is left.
	Gone Action = "Gone"
)

// Terminal reports whether only the deletion of the MaasMachine helps.
func (a Action) Terminal() bool { return a == Failed || a == Lost }

// Limit is the kind of timeout of a state.
type Limit string

// The limits.
const (
	// NoLimit is for states with an immediate next step, and for states that only an administrator or a deletion ends.
	NoLimit Limit = ""
	// DeployLimit limits an installation. BootLimit limits the time until a machine that was powered on reports that it is
	// on.
	DeployLimit Limit = "Deploy"
	BootLimit   Limit = "Boot"
	// ReleaseLimit limits a release, EraseLimit a release that erases disks.
	ReleaseLimit Limit = "Release"
	EraseLimit   Limit = "Erase"
	// MaintenanceLimit limits the time that administrators work on a machine.
	MaintenanceLimit Limit = "Maintenance"
)

// Outcome is an action with the reason and the message of a condition.
type Outcome struct {
	Action  Action
	Reason  string
	Message string
	// Limit is the timeout of the state, Then the action after it.
	Limit Limit
	Then  Action
}

// Overdue returns the outcome of a state that has exceeded its limit.
func (o Outcome) Overdue(limit time.Duration) Outcome {
	late := Outcome{Action: o.Then, Reason: o.Reason, Message: fmt.Sprintf("%s, for more than %s", o.Message, limit)}
	switch o.Limit {
	case DeployLimit:
		late.Reason = ReasonDeployTimedOut
	case ReleaseLimit, EraseLimit:
		late.Reason = ReasonReleaseTimedOut
		late.Message += "; check its power and its console in MAAS"
	}
	return late
}

// Condition reasons. Where the upstream provider has a reason, it is the same.
const (
	ReasonDeployed       = infrav1.MachineDeployedReason
	ReasonDeploying      = infrav1.MachineDeployingReason
	ReasonDeployFailed   = infrav1.MachineDeployFailedReason
	ReasonDeployAborted  = infrav1.MachineDeployAbortedReason
	ReasonDeployTimedOut = infrav1.MachineDeployTimedOutReason
	ReasonPoweredOff     = infrav1.MachinePoweredOffReason
	ReasonTerminated     = infrav1.MachineTerminatedReason
	ReasonNotFound       = infrav1.MachineNotFoundReason
	ReasonBroken         = infrav1.MachineBrokenReason
	ReasonTakenOver      = infrav1.MachineTakenOverReason
	ReasonMaintenance    = infrav1.MachineInMaintenanceReason
	ReasonTestsFailed    = infrav1.MachineTestsFailedReason
	ReasonUndefined      = infrav1.MachineStateUndefinedReason
	ReasonReleasing      = infrav1.MachineReleasingReason
	ReasonReleaseFailed  = infrav1.MachineReleaseFailedReason
	ReasonReleaseBlocked = infrav1.MachineReleaseBlockedReason
	// ReasonReleaseTimedOut is for a release that MAAS neither completes nor aborts.
	ReasonReleaseTimedOut = infrav1.MachineReleaseTimedOutReason
	ReasonReleased        = infrav1.MachineReleasedReason
)

type rule struct {
	action Action
	reason string
	// text follows "machine m3 (wq4h8c) is Testing: ".
	text string
	// limit is the timeout of the state, then is the action after it.
	limit Limit
	then  Action
}

func (r rule) within(limit Limit, then Action) rule {
	r.limit, r.then = limit, then
	return r
}

type row struct{ acquired, installing, provisioned, leaving rule }

var (
	deploying  = rule{action: Wait, reason: ReasonDeploying, text: "MAAS installs it"}
	running    = rule{action: Running, reason: ReasonDeployed}
	released   = rule{action: Lost, reason: ReasonTerminated, text: "it was released outside Cluster API"}
	broken     = rule{action: Lost, reason: ReasonBroken, text: "it was marked as broken in MAAS"}
	brokenTry  = rule{action: Retry, reason: ReasonBroken, text: "it was marked as broken in MAAS during the deployment"}
	failed     = rule{action: Retry, reason: ReasonDeployFailed, text: "the deployment failed"}
	undeployed = rule{action: Failed, reason: ReasonTerminated, text: "it was deployed before and is no longer deployed"}
	care       = rule{action: Wait, reason: ReasonMaintenance, text: "it is under maintenance in MAAS"}
	ill        = rule{action: Failed, reason: ReasonTestsFailed, text: "its hardware tests failed"}
	illTry     = rule{action: Retry, reason: ReasonTestsFailed, text: "its hardware tests failed"}
	unusable   = rule{action: Failed, reason: ReasonTerminated, text: "MAAS took it out of use"}
	undefined  = rule{action: Wait, reason: ReasonUndefined, text: "this provider does not know that state"}
	deploy     = rule{action: Deploy, reason: ReasonDeploying, text: "it is about to be installed"}
	aborted    = rule{action: Retry, reason: ReasonDeployAborted, text: "the deployment was aborted"}
	release    = rule{action: Release, reason: ReasonReleasing, text: "it is being released"}
	releasing  = rule{action: Wait, reason: ReasonReleasing, text: "MAAS is releasing it"}
	stuck      = rule{action: Stuck, reason: ReasonReleaseFailed, text: "MAAS could not release it; the release is retried; check its power and console in MAAS"}
	blocked    = rule{action: Blocked, reason: ReasonReleaseBlocked, text: "MAAS cannot release a machine in this state; end the state in MAAS"}
	// An override of the tests needs an administrator, and marking a machine as broken keeps its data. The controller must
	// not decide either.
	illBlocked = rule{action: Blocked, reason: ReasonReleaseBlocked, text: "its hardware tests failed, and MAAS cannot release such a machine; " +
		"override the failed tests in MAAS, after which it is released, or mark it as broken"}
	gone      = rule{action: Gone, reason: ReasonReleased}
	ownerless = rule{action: Lost, reason: ReasonTerminated, text: "it has no owner in MAAS: it was marked broken and fixed, or released, outside Cluster API"}
)

// lostUntil returns the row of a state that an allocated machine can only be in if it was released outside the
// controller.
func lostUntil(leaving rule) row { return row{released, released, released, leaving} }

func all(living, leaving rule) row { return row{living, living, living, leaving} }

// bounded returns the row of a temporary state. After the limit, a machine that was never provisioned is replaced, and
// a provisioned one fails.
func bounded(wait rule, limit Limit, leaving rule) row {
	return row{wait.within(limit, Retry), wait.within(limit, Retry), wait.within(limit, Failed), leaving}
}

var table = map[maas.Status]row{
	maas.StatusNew:                 lostUntil(gone),
	maas.StatusCommissioning:       lostUntil(gone),
	maas.StatusFailedCommissioning: lostUntil(gone),
	maas.StatusReady:               lostUntil(gone),
	maas.StatusReleasing:           lostUntil(releasing.within(ReleaseLimit, Blocked)),
	maas.StatusDiskErasing:         lostUntil(releasing.within(EraseLimit, Blocked)),
	maas.StatusReleasingFailed:     lostUntil(stuck),
	maas.StatusFailedDiskErasing:   lostUntil(stuck),
	maas.StatusMissing:             all(unusable, gone),
	maas.StatusRetired:             all(unusable, gone),
	maas.StatusReserved:            all(unusable, release),
	maas.StatusAllocated:           {deploy, aborted, undeployed, release},
	maas.StatusDeploying:           bounded(deploying, DeployLimit, release),
	maas.StatusDeployed:            all(running, release),
	maas.StatusFailedDeployment:    {failed, failed, undeployed, release},
	// A release would make a broken machine Ready, and so undo the decision of the administrator.
	maas.StatusBroken: {brokenTry, brokenTry, broken, gone},

	maas.StatusRescueMode:              bounded(care, MaintenanceLimit, blocked),
	maas.StatusEnteringRescueMode:      bounded(care, MaintenanceLimit, blocked),
	maas.StatusFailedToEnterRescueMode: bounded(care, MaintenanceLimit, blocked),
	maas.StatusExitingRescueMode:       bounded(care, MaintenanceLimit, blocked),
	maas.StatusFailedToExitRescueMode:  bounded(care, MaintenanceLimit, blocked),
	maas.StatusTesting:                 bounded(care, MaintenanceLimit, blocked),
	maas.StatusFailedTesting:           {illTry, illTry, ill, illBlocked},
}

// unknown is the row for states of a newer MAAS. The state does not show whether a running machine is unhealthy; its
// Node does.
var unknown = row{undefined.within(DeployLimit, Retry), undefined.within(DeployLimit, Retry), undefined, undefined.within(ReleaseLimit, Blocked)}

// needsOwner holds the states in which an allocated machine has an owner.
var needsOwner = map[maas.Status]bool{
	maas.StatusAllocated: true, maas.StatusDeploying: true, maas.StatusDeployed: true, maas.StatusFailedDeployment: true,
}

// Evaluate returns the outcome for a machine that was not allocated again by another user. A nil machine is one that
// MAAS does not have.
func Evaluate(stage Stage, m *maas.Machine) Outcome {
	if m == nil {
		return vanished(stage)
	}
	r, ok := table[m.Status]
	if !ok {
		r = unknown
	}
	chosen := [...]rule{r.acquired, r.installing, r.provisioned, r.leaving}[stage]
	if stage != Leaving && needsOwner[m.Status] && m.Owner == "" {
		chosen = ownerless
	}
	if chosen.action == Running && switchedOff(m) {
		return off(stage, m)
	}
	return Outcome{Action: chosen.action, Reason: chosen.reason, Message: sentence(m, chosen.text), Limit: chosen.limit, Then: chosen.then}
}

// off returns the outcome for a machine that is deployed and powered off. A machine that cannot be powered on counts as
// failed.
func off(stage Stage, m *maas.Machine) Outcome {
	outcome := Outcome{Action: PowerOn, Reason: ReasonPoweredOff, Message: fmt.Sprintf("%s, but switched off", Describe(m)), Limit: BootLimit, Then: Retry}
	if stage == Provisioned {
		outcome.Then = Failed
	}
	return outcome
}

// switchedOff reports whether the machine is certainly off. MAAS does not know the power state of a machine whose power
// is manual, unknown or in error.
func switchedOff(m *maas.Machine) bool {
	return m.PowerState == maas.PowerOff && m.PowerType != maas.PowerTypeManual
}

func vanished(stage Stage) Outcome {
	if stage == Leaving {
		return Outcome{Action: Gone, Reason: ReasonReleased, Message: "MAAS no longer has the machine"}
	}
	return Outcome{Action: Lost, Reason: ReasonNotFound, Message: "MAAS no longer has the machine: it was deleted there"}
}

// Discard returns the outcome for a virtual machine that is deleted with its MaasMachine, whatever its state.
func Discard(m *maas.Machine) Outcome {
	return Outcome{Action: Release, Reason: ReasonReleasing, Message: fmt.Sprintf("%s: the virtual machine is deleted", Describe(m))}
}

// TakenOver returns the outcome for a machine that was released and allocated again for another owner.
func TakenOver(stage Stage, m *maas.Machine) Outcome {
	return reallocated(stage, Describe(m)+", but not for this MaasMachine")
}

// Foreign returns the outcome for a machine that is allocated to another MAAS user.
func Foreign(stage Stage, systemID string) Outcome {
	return reallocated(stage, fmt.Sprintf("machine %s belongs to another MAAS user", systemID))
}

// reallocated returns the outcome for a machine that was allocated again. Of a machine that is to be released, it is
// unknown which release it was: the answer to the release by this provider may have been lost.
func reallocated(stage Stage, state string) Outcome {
	if stage == Leaving {
		return Outcome{Action: Gone, Reason: ReasonReleased, Message: state + ": it was released and allocated again"}
	}
	return Outcome{Action: Lost, Reason: ReasonTakenOver, Message: state + ": it was released outside Cluster API and allocated again"}
}

func sentence(m *maas.Machine, text string) string {
	s := Describe(m)
	if text != "" {
		s += ": " + text
	}
	if words := Words(m); words != "" {
		s += fmt.Sprintf(" (MAAS says: %s)", words)
	}
	return s
}

// Installed reports whether MAAS may have begun to install a machine since its allocation. MAAS stores the operating
// system when it accepts a deployment, and clears it at the release.
func Installed(m *maas.Machine) bool {
	return m.Status != maas.StatusAllocated || m.OSystem != ""
}

// Describe returns a machine and its state: "machine m3 (wq4h8c) is Deploying".
func Describe(m *maas.Machine) string {
	return fmt.Sprintf("machine %s (%s) is %s", m.Hostname, m.SystemID, StateName(m))
}

// StateName returns the state as MAAS names it, including states of a newer MAAS.
func StateName(m *maas.Machine) string {
	if m.StatusName != "" {
		return m.StatusName
	}
	return m.Status.String()
}

// Words returns the message of MAAS about the state, if it says more than the name of the state.
func Words(m *maas.Machine) string {
	switch {
	case m.ErrorDescription != "":
		return m.ErrorDescription
	case m.StatusMessage == StateName(m):
		return ""
	}
	return m.StatusMessage
}
