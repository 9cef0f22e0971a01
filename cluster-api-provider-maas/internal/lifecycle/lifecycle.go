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

// Verdict is what to do.
type Verdict string

// The verdicts.
const (
	// Deploy asks MAAS to install the machine.
	Deploy Verdict = "Deploy"
	// Wait looks again later.
	Wait Verdict = "Wait"
	// Running means that the machine is as it should be.
	Running Verdict = "Running"
	// PowerOn means that the machine is installed and switched off.
	PowerOn Verdict = "PowerOn"
	// Retry gives the machine back and takes another one.
	Retry Verdict = "Retry"
	// Failed is terminal; the machine is still held.
	Failed Verdict = "Failed"
	// Lost is terminal; the machine is not ours any more and must not be touched.
	Lost Verdict = "Lost"
	// Release asks MAAS to take the machine back.
	Release Verdict = "Release"
	// Stuck is a release that failed; it is tried again, slowly, and said.
	Stuck Verdict = "Stuck"
	// Blocked is a state that MAAS releases no machine from; a person must end it.
	Blocked Verdict = "Blocked"
	// Gone means that nothing of the allocation is left.
	Gone Verdict = "Gone"
)

// Terminal tells whether only the deletion of the MaasMachine helps.
func (v Verdict) Terminal() bool { return v == Failed || v == Lost }

// Outcome is a verdict with the words for a condition.
type Outcome struct {
	Verdict Verdict
	Reason  string
	Message string
}

// Reasons of conditions. Where upstream's provider has one, it is that.
const (
	ReasonDeployed       = "MachineDeployed"
	ReasonDeploying      = "MachineDeploying"
	ReasonDeployFailed   = "MachineDeployFailed"
	ReasonDeployAborted  = "MachineDeployAborted"
	ReasonPoweredOff     = "MachinePoweredOff"
	ReasonTerminated     = "MachineTerminatedReason"
	ReasonNotFound       = "MachineNotFound"
	ReasonBroken         = "MachineBroken"
	ReasonTakenOver      = "MachineTakenOver"
	ReasonMaintenance    = "MachineInMaintenance"
	ReasonUndefined      = "MachineStateUndefined"
	ReasonReleasing      = "MachineReleasing"
	ReasonReleaseFailed  = "MachineReleaseFailed"
	ReasonReleaseBlocked = "MachineReleaseBlocked"
	ReasonReleased       = "MachineReleased"
)

type rule struct {
	verdict Verdict
	reason  string
	// text follows "machine m3 (wq4h8c) is Testing: ".
	text string
}

type row struct{ acquired, installing, provisioned, leaving rule }

var (
	deploying  = rule{Wait, ReasonDeploying, "MAAS installs it"}
	running    = rule{Running, ReasonDeployed, ""}
	released   = rule{Lost, ReasonTerminated, "it was released from outside of Cluster API"}
	broken     = rule{Lost, ReasonBroken, "somebody marked it as broken"}
	brokenTry  = rule{Retry, ReasonBroken, "somebody marked it as broken while it was installed"}
	failed     = rule{Retry, ReasonDeployFailed, "the deployment failed"}
	undeployed = rule{Failed, ReasonTerminated, "it was installed once, and is not any more"}
	care       = rule{Wait, ReasonMaintenance, "somebody works on it in MAAS"}
	unusable   = rule{Failed, ReasonTerminated, "MAAS took it out of use"}
	release    = rule{Release, ReasonReleasing, "it is given back"}
	releasing  = rule{Wait, ReasonReleasing, "MAAS takes it back"}
	stuck      = rule{Stuck, ReasonReleaseFailed, "MAAS could not take it back; the release is asked for again, but the machine may need a person"}
	blocked    = rule{Blocked, ReasonReleaseBlocked, "MAAS releases no machine from this state; end it in MAAS"}
	gone       = rule{Gone, ReasonReleased, ""}
	ownerless  = rule{Lost, ReasonTerminated, "nobody has it in MAAS: it was marked as broken and fixed, or taken away, from outside of Cluster API"}
)

// lostUntil is a state that a held machine can only be in when somebody else took it away.
func lostUntil(leaving rule) row { return row{released, released, released, leaving} }

func all(living, leaving rule) row { return row{living, living, living, leaving} }

var table = map[maas.Status]row{
	maas.StatusNew:                 lostUntil(gone),
	maas.StatusCommissioning:       lostUntil(gone),
	maas.StatusFailedCommissioning: lostUntil(gone),
	maas.StatusReady:               lostUntil(gone),
	maas.StatusReleasing:           lostUntil(releasing),
	maas.StatusDiskErasing:         lostUntil(releasing),
	maas.StatusReleasingFailed:     lostUntil(stuck),
	maas.StatusFailedDiskErasing:   lostUntil(stuck),
	maas.StatusMissing:             all(unusable, gone),
	maas.StatusRetired:             all(unusable, gone),
	maas.StatusReserved:            all(unusable, release),
	maas.StatusAllocated:           {rule{Deploy, ReasonDeploying, "it is about to be installed"}, rule{Retry, ReasonDeployAborted, "the deployment was aborted"}, undeployed, release},
	maas.StatusDeploying:           all(deploying, release),
	maas.StatusDeployed:            all(running, release),
	maas.StatusFailedDeployment:    {failed, failed, undeployed, release},
	// A release would make a broken machine Ready, and so undo what the person who marked it wanted.
	maas.StatusBroken: {brokenTry, brokenTry, broken, gone},

	maas.StatusRescueMode:              all(care, blocked),
	maas.StatusEnteringRescueMode:      all(care, blocked),
	maas.StatusFailedToEnterRescueMode: all(care, blocked),
	maas.StatusExitingRescueMode:       all(care, blocked),
	maas.StatusFailedToExitRescueMode:  all(care, blocked),
	maas.StatusTesting:                 all(care, blocked),
	maas.StatusFailedTesting:           all(care, blocked),
}

// needsOwner are the states in which a machine that is held has an owner.
var needsOwner = map[maas.Status]bool{
	maas.StatusAllocated: true, maas.StatusDeploying: true, maas.StatusDeployed: true, maas.StatusFailedDeployment: true,
}

// Judge says what to do about a machine that was not allocated anew since; a nil machine is one that MAAS does not have.
func Judge(stage Stage, m *maas.Machine) Outcome {
	if m == nil {
		return vanished(stage)
	}
	r, ok := table[m.Status]
	if !ok {
		return Outcome{Wait, ReasonUndefined, fmt.Sprintf("%s is in a state that this provider does not know", Describe(m))}
	}
	chosen := [...]rule{r.acquired, r.installing, r.provisioned, r.leaving}[stage]
	if stage != Leaving && needsOwner[m.Status] && m.Owner == "" {
		chosen = ownerless
	}
	if chosen.verdict == Running && switchedOff(m) {
		return Outcome{PowerOn, ReasonPoweredOff, fmt.Sprintf("%s, but switched off", Describe(m))}
	}
	return Outcome{chosen.verdict, chosen.reason, sentence(m, chosen.text)}
}

// switchedOff needs certainty: MAAS knows nothing of a machine whose power is manual, unknown or in error.
func switchedOff(m *maas.Machine) bool {
	return m.PowerState == maas.PowerOff && m.PowerType != maas.PowerTypeManual
}

func vanished(stage Stage) Outcome {
	if stage == Leaving {
		return Outcome{Gone, ReasonReleased, "MAAS does not have the machine any more"}
	}
	return Outcome{Lost, ReasonNotFound, "MAAS does not have the machine any more: it was deleted there"}
}

// TakenOver is the outcome for a machine that was allocated anew, for somebody else.
func TakenOver(stage Stage, m *maas.Machine) Outcome {
	message := fmt.Sprintf("%s, but not for this MaasMachine: it was released from outside of Cluster API, and allocated anew", Describe(m))
	if stage == Leaving {
		return Outcome{Gone, ReasonReleased, message}
	}
	return Outcome{Lost, ReasonTakenOver, message}
}

// Foreign is the outcome for a machine that another MAAS user has.
func Foreign(stage Stage, systemID string) Outcome {
	message := fmt.Sprintf("machine %s belongs to another MAAS user: it was released from outside of Cluster API, and allocated anew", systemID)
	if stage == Leaving {
		return Outcome{Gone, ReasonReleased, message}
	}
	return Outcome{Lost, ReasonTakenOver, message}
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
