// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides, by a table, what each of MAAS's states means for a machine that a MaasMachine holds.
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

	"github.com/openshift/hypershift/support/maas"
)

// Stage is how far a MaasMachine has come with its machine.
type Stage int

// The stages. A machine leaves when its MaasMachine is deleted, and also when a failed deployment makes room for another try.
const (
	Acquired Stage = iota
	Installing
	Provisioned
	Leaving
)

// Action is what to do.
type Action string

// The actions.
const (
	// Deploy asks MAAS to install the machine.
	Deploy Action = "Deploy"
	// Wait looks again later.
	Wait Action = "Wait"
	// Running means that the machine is as it should be.
	Running Action = "Running"
	// PowerOn means that the machine is installed and switched off.
	PowerOn Action = "PowerOn"
	// Retry gives the machine back and takes another one.
	Retry Action = "Retry"
	// Failed is terminal; the machine is still held.
	Failed Action = "Failed"
	// Lost is terminal; the machine is not ours any more and must not be touched.
	Lost Action = "Lost"
	// Release asks MAAS to take the machine back.
	Release Action = "Release"
	// Stuck is a release that failed; it is tried again, slowly, and said.
	Stuck Action = "Stuck"
	// Blocked is a state that MAAS releases no machine from, or a release without an end; a person must look at it.
	Blocked Action = "Blocked"
	// Gone means that nothing of the allocation is left.
	Gone Action = "Gone"
)

// Terminal tells whether only the deletion of the MaasMachine helps.
func (a Action) Terminal() bool { return a == Failed || a == Lost }

// Limit says which deadline a state has that is waited for.
type Limit string

// The limits.
const (
	// NoLimit is that of a state in which the next step is taken at once, and of one that only a person or a deletion ends.
	NoLimit Limit = ""
	// DeployLimit bounds an installation, BootLimit the time until a machine that is switched on is on.
	DeployLimit Limit = "Deploy"
	BootLimit   Limit = "Boot"
	// ReleaseLimit bounds a release, EraseLimit one that erases disks.
	ReleaseLimit Limit = "Release"
	EraseLimit   Limit = "Erase"
	// MaintenanceLimit bounds what people do to a machine.
	MaintenanceLimit Limit = "Maintenance"
)

// Outcome is an action with the words for a condition.
type Outcome struct {
	Action  Action
	Reason  string
	Message string
	// Limit is the deadline of the state, Then what is done when it has passed.
	Limit Limit
	Then  Action
}

// Overdue is the outcome of a state that lasted longer than its limit.
func (o Outcome) Overdue(limit time.Duration) Outcome {
	late := Outcome{Action: o.Then, Reason: o.Reason, Message: fmt.Sprintf("%s, for more than %s", o.Message, limit)}
	switch o.Limit {
	case DeployLimit:
		late.Reason = ReasonDeployTimedOut
	case ReleaseLimit, EraseLimit:
		late.Reason = ReasonReleaseTimedOut
		late.Message += "; look at its power and its console in MAAS"
	}
	return late
}

// Reasons of conditions. Where upstream's provider has one, it is that.
const (
	ReasonDeployed       = "MachineDeployed"
	ReasonDeploying      = "MachineDeploying"
	ReasonDeployFailed   = "MachineDeployFailed"
	ReasonDeployAborted  = "MachineDeployAborted"
	ReasonDeployTimedOut = "MachineDeployTimedOut"
	ReasonPoweredOff     = "MachinePoweredOff"
	ReasonTerminated     = "MachineTerminatedReason"
	ReasonNotFound       = "MachineNotFound"
	ReasonBroken         = "MachineBroken"
	ReasonTakenOver      = "MachineTakenOver"
	ReasonMaintenance    = "MachineInMaintenance"
	ReasonTestsFailed    = "MachineTestsFailed"
	ReasonUndefined      = "MachineStateUndefined"
	ReasonReleasing      = "MachineReleasing"
	ReasonReleaseFailed  = "MachineReleaseFailed"
	ReasonReleaseBlocked = "MachineReleaseBlocked"
	// ReasonReleaseTimedOut is a release that MAAS neither ends nor gives up.
	ReasonReleaseTimedOut = "MachineReleaseTimedOut"
	ReasonReleased        = "MachineReleased"
)

type rule struct {
	action Action
	reason string
	// text follows "machine m3 (wq4h8c) is Testing: ".
	text string
	// limit bounds the state, and then is what comes after.
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
	released   = rule{action: Lost, reason: ReasonTerminated, text: "it was released from outside of Cluster API"}
	broken     = rule{action: Lost, reason: ReasonBroken, text: "somebody marked it as broken"}
	brokenTry  = rule{action: Retry, reason: ReasonBroken, text: "somebody marked it as broken while it was installed"}
	failed     = rule{action: Retry, reason: ReasonDeployFailed, text: "the deployment failed"}
	undeployed = rule{action: Failed, reason: ReasonTerminated, text: "it was installed once, and is not any more"}
	care       = rule{action: Wait, reason: ReasonMaintenance, text: "somebody works on it in MAAS"}
	ill        = rule{action: Failed, reason: ReasonTestsFailed, text: "its hardware tests failed"}
	illTry     = rule{action: Retry, reason: ReasonTestsFailed, text: "its hardware tests failed"}
	unusable   = rule{action: Failed, reason: ReasonTerminated, text: "MAAS took it out of use"}
	undefined  = rule{action: Wait, reason: ReasonUndefined, text: "this provider does not know that state"}
	deploy     = rule{action: Deploy, reason: ReasonDeploying, text: "it is about to be installed"}
	aborted    = rule{action: Retry, reason: ReasonDeployAborted, text: "the deployment was aborted"}
	release    = rule{action: Release, reason: ReasonReleasing, text: "it is given back"}
	releasing  = rule{action: Wait, reason: ReasonReleasing, text: "MAAS takes it back"}
	stuck      = rule{action: Stuck, reason: ReasonReleaseFailed, text: "MAAS could not take it back; the release is asked for again, but the machine may need a person"}
	blocked    = rule{action: Blocked, reason: ReasonReleaseBlocked, text: "MAAS releases no machine from this state; end it in MAAS"}
	// An override needs an administrator, and a machine that is marked as broken keeps its data: neither is ours to choose.
	illBlocked = rule{action: Blocked, reason: ReasonReleaseBlocked, text: "its hardware tests failed, and MAAS releases no such machine: " +
		"override the failed tests there, after which it is given back, or mark it as broken"}
	gone      = rule{action: Gone, reason: ReasonReleased}
	ownerless = rule{action: Lost, reason: ReasonTerminated, text: "nobody has it in MAAS: it was marked as broken and fixed, or taken away, from outside of Cluster API"}
)

// lostUntil is a state that a held machine can only be in when somebody else took it away.
func lostUntil(leaving rule) row { return row{released, released, released, leaving} }

func all(living, leaving rule) row { return row{living, living, living, leaving} }

// bounded is a state that is waited for: when it lasts, a machine that was never ready makes room for another one, and one that
// was is given up.
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
	// A release would make a broken machine Ready, and so undo what the person who marked it wanted.
	maas.StatusBroken: {brokenTry, brokenTry, broken, gone},

	maas.StatusRescueMode:              bounded(care, MaintenanceLimit, blocked),
	maas.StatusEnteringRescueMode:      bounded(care, MaintenanceLimit, blocked),
	maas.StatusFailedToEnterRescueMode: bounded(care, MaintenanceLimit, blocked),
	maas.StatusExitingRescueMode:       bounded(care, MaintenanceLimit, blocked),
	maas.StatusFailedToExitRescueMode:  bounded(care, MaintenanceLimit, blocked),
	maas.StatusTesting:                 bounded(care, MaintenanceLimit, blocked),
	maas.StatusFailedTesting:           {illTry, illTry, ill, illBlocked},
}

// unknown is the row of what a newer MAAS may have. Nobody can tell whether a machine that runs is ill then: its Node can.
var unknown = row{undefined.within(DeployLimit, Retry), undefined.within(DeployLimit, Retry), undefined, undefined.within(ReleaseLimit, Blocked)}

// needsOwner are the states in which a machine that is held has an owner.
var needsOwner = map[maas.Status]bool{
	maas.StatusAllocated: true, maas.StatusDeploying: true, maas.StatusDeployed: true, maas.StatusFailedDeployment: true,
}

// Evaluate says what to do about a machine that was not allocated anew since; a nil machine is one that MAAS does not have.
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

// off is the outcome for a machine that is installed and switched off. One that can't be switched on is as good as broken.
func off(stage Stage, m *maas.Machine) Outcome {
	outcome := Outcome{Action: PowerOn, Reason: ReasonPoweredOff, Message: fmt.Sprintf("%s, but switched off", Describe(m)), Limit: BootLimit, Then: Retry}
	if stage == Provisioned {
		outcome.Then = Failed
	}
	return outcome
}

// switchedOff needs certainty: MAAS knows nothing of a machine whose power is manual, unknown or in error.
func switchedOff(m *maas.Machine) bool {
	return m.PowerState == maas.PowerOff && m.PowerType != maas.PowerTypeManual
}

func vanished(stage Stage) Outcome {
	if stage == Leaving {
		return Outcome{Action: Gone, Reason: ReasonReleased, Message: "MAAS does not have the machine any more"}
	}
	return Outcome{Action: Lost, Reason: ReasonNotFound, Message: "MAAS does not have the machine any more: it was deleted there"}
}

// Discard is the outcome for a virtual machine that goes with its MaasMachine: whatever state it is in, it is deleted.
func Discard(m *maas.Machine) Outcome {
	return Outcome{Action: Release, Reason: ReasonReleasing, Message: fmt.Sprintf("%s: the virtual machine is deleted", Describe(m))}
}

// TakenOver is the outcome for a machine that was allocated anew, for somebody else.
func TakenOver(stage Stage, m *maas.Machine) Outcome {
	message := fmt.Sprintf("%s, but not for this MaasMachine: it was released from outside of Cluster API, and allocated anew", Describe(m))
	if stage == Leaving {
		return Outcome{Action: Gone, Reason: ReasonReleased, Message: message}
	}
	return Outcome{Action: Lost, Reason: ReasonTakenOver, Message: message}
}

// Foreign is the outcome for a machine that another MAAS user has.
func Foreign(stage Stage, systemID string) Outcome {
	message := fmt.Sprintf("machine %s belongs to another MAAS user: it was released from outside of Cluster API, and allocated anew", systemID)
	if stage == Leaving {
		return Outcome{Action: Gone, Reason: ReasonReleased, Message: message}
	}
	return Outcome{Action: Lost, Reason: ReasonTakenOver, Message: message}
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

// Describe names a machine and its state: "machine m3 (wq4h8c) is Deploying".
func Describe(m *maas.Machine) string {
	return fmt.Sprintf("machine %s (%s) is %s", m.Hostname, m.SystemID, StateName(m))
}

// StateName is the state in MAAS's own words, those of a newer MAAS too.
func StateName(m *maas.Machine) string {
	if m.StatusName != "" {
		return m.StatusName
	}
	return m.Status.String()
}

// Words returns what MAAS itself says about the state beyond its name.
func Words(m *maas.Machine) string {
	switch {
	case m.ErrorDescription != "":
		return m.ErrorDescription
	case m.StatusMessage == StateName(m):
		return ""
	}
	return m.StatusMessage
}
