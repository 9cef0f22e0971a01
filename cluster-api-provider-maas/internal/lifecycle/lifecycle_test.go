// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/maas"
)

// TestEveryStatus lists, independently of the table in the code, the action for each of the 23 states in each stage.
func TestEveryStatus(t *testing.T) {
	want := map[string][4]lifecycle.Action{ // Acquired, Installing, Provisioned, Leaving
		"New":                         {"Lost", "Lost", "Lost", "Gone"},
		"Commissioning":               {"Lost", "Lost", "Lost", "Gone"},
		"Failed commissioning":        {"Lost", "Lost", "Lost", "Gone"},
		"Missing":                     {"Failed", "Failed", "Failed", "Gone"},
		"Ready":                       {"Lost", "Lost", "Lost", "Gone"},
		"Reserved":                    {"Failed", "Failed", "Failed", "Release"},
		"Deployed":                    {"Running", "Running", "Running", "Release"},
		"Retired":                     {"Failed", "Failed", "Failed", "Gone"},
		"Broken":                      {"Retry", "Retry", "Lost", "Gone"},
		"Deploying":                   {"Wait", "Wait", "Wait", "Release"},
		"Allocated":                   {"Deploy", "Retry", "Failed", "Release"},
		"Failed deployment":           {"Retry", "Retry", "Failed", "Release"},
		"Releasing":                   {"Lost", "Lost", "Lost", "Wait"},
		"Releasing failed":            {"Lost", "Lost", "Lost", "Stuck"},
		"Disk erasing":                {"Lost", "Lost", "Lost", "Wait"},
		"Failed disk erasing":         {"Lost", "Lost", "Lost", "Stuck"},
		"Rescue mode":                 {"Wait", "Wait", "Wait", "Blocked"},
		"Entering rescue mode":        {"Wait", "Wait", "Wait", "Blocked"},
		"Failed to enter rescue mode": {"Wait", "Wait", "Wait", "Blocked"},
		"Exiting rescue mode":         {"Wait", "Wait", "Wait", "Blocked"},
		"Failed to exit rescue mode":  {"Wait", "Wait", "Wait", "Blocked"},
		"Testing":                     {"Wait", "Wait", "Wait", "Blocked"},
		"Failed testing":              {"Retry", "Retry", "Failed", "Blocked"},
	}
	g := NewWithT(t)
	g.Expect(want).To(HaveLen(len(maas.Statuses())))
	for _, status := range maas.Statuses() {
		for stage := lifecycle.Acquired; stage <= lifecycle.Leaving; stage++ {
			m := &maas.Machine{SystemID: "wq4h8c", Hostname: "mole", Status: status, PowerState: maas.PowerOn, Owner: "alice"}
			got := lifecycle.Evaluate(stage, m)
			g.Expect(got.Action).To(Equal(want[status.String()][stage]), "%s in stage %d", status, stage)
			g.Expect(got.Reason).To(MatchRegexp(`^[A-Za-z]+$`))
			g.Expect(got.Message).To(HavePrefix("machine mole (wq4h8c) is " + status.String()))
		}
	}
}

// TestEveryStateEnds covers all states, including an unknown one, in every stage. Each has an immediate action, is
// final, or has a timeout with another action after it.
func TestEveryStateEnds(t *testing.T) {
	for _, status := range append(maas.Statuses(), 42) {
		for _, power := range []maas.PowerState{maas.PowerOn, maas.PowerOff} {
			for stage := lifecycle.Acquired; stage <= lifecycle.Leaving; stage++ {
				if !status.Known() && stage == lifecycle.Provisioned {
					continue // In this stage the Node shows whether such a machine is healthy.
				}
				got := lifecycle.Evaluate(stage, &maas.Machine{Status: status, Owner: "me", PowerState: power, PowerType: "ipmi"})
				switch got.Action {
				case lifecycle.Wait, lifecycle.PowerOn:
					late := got.Overdue(time.Hour)
					if got.Limit == lifecycle.NoLimit || late.Action == "" || late.Action == got.Action {
						t.Errorf("%s in stage %d is waited for without end: %+v, then %+v", status, stage, got, late)
					}
					if late.Reason == "" || !strings.Contains(late.Message, "1h0m0s") {
						t.Errorf("%s in stage %d does not say how long it lasted: %+v", status, stage, late)
					}
				default:
					if got.Limit != lifecycle.NoLimit {
						t.Errorf("%s in stage %d has a deadline that nothing waits for: %+v", status, stage, got)
					}
				}
			}
		}
	}
}

// TestSentence checks the exact text about a machine in a condition.
func TestSentence(t *testing.T) {
	for name, tc := range map[string]struct {
		machine maas.Machine
		want    string
	}{
		"When a machine runs, the message should only name its state": {
			maas.Machine{Status: maas.StatusDeployed, StatusMessage: "Deployed"}, "machine mole (wq4h8c) is Deployed"},
		"When MAAS has a status message, it should follow the state": {
			maas.Machine{Status: maas.StatusDeployed, StatusMessage: "Rebooting"}, "machine mole (wq4h8c) is Deployed (MAAS says: Rebooting)"},
		"When MAAS has its own name for the state, the message should use it": {
			maas.Machine{Status: maas.StatusDeploying, StatusName: "Installing OS"}, "machine mole (wq4h8c) is Installing OS: MAAS installs it"},
		"When MAAS says why a machine is broken, the message should use that and not the last event": {
			maas.Machine{Status: maas.StatusBroken, ErrorDescription: "fan", StatusMessage: "Marking node broken"},
			"machine mole (wq4h8c) is Broken: it was marked as broken in MAAS (MAAS says: fan)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := tc.machine
			m.SystemID, m.Hostname, m.Owner, m.PowerState = "wq4h8c", "mole", "alice", maas.PowerOn
			NewWithT(t).Expect(lifecycle.Evaluate(lifecycle.Provisioned, &m).Message).To(Equal(tc.want))
		})
	}
}

// TestOverdue checks the message and the next action for a machine that stayed in a state for too long.
func TestOverdue(t *testing.T) {
	const console = "check its power and its console in MAAS"
	for name, tc := range map[string]struct {
		stage  lifecycle.Stage
		status maas.Status
		power  maas.PowerState
		then   lifecycle.Action
		reason string
		help   string
	}{
		"When an installation takes too long, it should retry on another machine":                                {lifecycle.Installing, maas.StatusDeploying, maas.PowerOn, lifecycle.Retry, "MachineDeployTimedOut", ""},
		"When the machine of a node is reinstalled for too long, it should fail":                                 {lifecycle.Provisioned, maas.StatusDeploying, maas.PowerOn, lifecycle.Failed, "MachineDeployTimedOut", ""},
		"When a release takes too long, it should name the remedy":                                               {lifecycle.Leaving, maas.StatusReleasing, maas.PowerOn, lifecycle.Blocked, "MachineReleaseTimedOut", console},
		"When erasing disks takes too long, it should name the remedy":                                           {lifecycle.Leaving, maas.StatusDiskErasing, maas.PowerOn, lifecycle.Blocked, "MachineReleaseTimedOut", console},
		"When a machine is being released and stays in an unknown state for too long, it should name the remedy": {lifecycle.Leaving, 42, maas.PowerOn, lifecycle.Blocked, "MachineReleaseTimedOut", console},
		"When a machine is in maintenance for too long, the message should name its state":                       {lifecycle.Acquired, maas.StatusRescueMode, maas.PowerOn, lifecycle.Retry, "MachineInMaintenance", ""},
		"When a machine does not power on, the message should still say that it is off":                          {lifecycle.Provisioned, maas.StatusDeployed, maas.PowerOff, lifecycle.Failed, "MachinePoweredOff", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := &maas.Machine{SystemID: "wq4h8c", Hostname: "mole", Status: tc.status, PowerState: tc.power, PowerType: "ipmi", Owner: "alice"}
			got := lifecycle.Evaluate(tc.stage, m).Overdue(90 * time.Minute)
			g.Expect(got.Action).To(Equal(tc.then))
			g.Expect(got.Reason).To(Equal(tc.reason))
			g.Expect(got.Message).To(And(HavePrefix("machine mole (wq4h8c)"), ContainSubstring("for more than 1h30m0s"), HaveSuffix(tc.help)))
			if tc.help == "" {
				g.Expect(got.Message).NotTo(ContainSubstring(console), "nobody asked for the machine back")
			}
		})
	}
}

// TestWhatHelps checks that the message of a state that MAAS never ends itself contains the remedy.
func TestWhatHelps(t *testing.T) {
	for status, help := range map[maas.Status]string{
		maas.StatusFailedTesting:     "override the failed tests in MAAS",
		maas.StatusRescueMode:        "end the state in MAAS",
		maas.StatusReleasingFailed:   "check its power and console in MAAS",
		maas.StatusFailedDiskErasing: "check its power and console in MAAS",
	} {
		t.Run("When a machine cannot leave "+status.String()+", it should say what to do", func(t *testing.T) {
			got := lifecycle.Evaluate(lifecycle.Leaving, &maas.Machine{SystemID: "wq4h8c", Status: status, Owner: "alice"})
			NewWithT(t).Expect(got.Message).To(ContainSubstring(help))
		})
	}
}

func TestNeverTouchWhatIsNotOurs(t *testing.T) {
	for _, status := range maas.Statuses() {
		g := NewWithT(t)
		m := &maas.Machine{Status: status, Owner: "alice"}
		for stage := lifecycle.Acquired; stage <= lifecycle.Provisioned; stage++ {
			g.Expect(lifecycle.TakenOver(stage, m).Action).To(Equal(lifecycle.Lost), "%s", status)
		}
		g.Expect(lifecycle.TakenOver(lifecycle.Leaving, m).Action).To(Equal(lifecycle.Gone), "%s", status)
	}
}

func TestOddMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		stage   lifecycle.Stage
		machine *maas.Machine
		want    lifecycle.Action
		reason  string
		says    string
	}{
		"When MAAS does not have the machine, it should be Lost":                                {lifecycle.Provisioned, nil, lifecycle.Lost, "MachineNotFound", "deleted there"},
		"When MAAS does not have a machine that is being released, it should be Gone":           {lifecycle.Leaving, nil, lifecycle.Gone, "MachineReleased", ""},
		"When the state is unknown, it should wait":                                             {lifecycle.Provisioned, &maas.Machine{Status: 42, StatusName: "Levitating"}, lifecycle.Wait, "MachineStateUndefined", "is Levitating"},
		"When the state is unknown during the release, it should wait":                          {lifecycle.Leaving, &maas.Machine{Status: 42}, lifecycle.Wait, "MachineStateUndefined", "Status 42"},
		"When a deployed machine is off, it should be powered on":                               {lifecycle.Provisioned, &maas.Machine{Status: maas.StatusDeployed, Owner: "alice", PowerState: maas.PowerOff, PowerType: "ipmi"}, lifecycle.PowerOn, "MachinePoweredOff", "switched off"},
		"When a deployed machine has no owner, it should be Lost":                               {lifecycle.Provisioned, &maas.Machine{Status: maas.StatusDeployed, PowerState: maas.PowerOff, PowerType: "ipmi"}, lifecycle.Lost, "MachineTerminatedReason", "marked broken and fixed"},
		"When a machine without an owner is being released, MAAS should be asked to release it": {lifecycle.Leaving, &maas.Machine{Status: maas.StatusDeployed, PowerState: maas.PowerOff, PowerType: "ipmi"}, lifecycle.Release, "MachineReleasing", ""},
		"When the power type is manual, the power state off should be ignored":                  {lifecycle.Provisioned, &maas.Machine{Status: maas.StatusDeployed, Owner: "alice", PowerState: maas.PowerOff, PowerType: "manual"}, lifecycle.Running, "MachineDeployed", ""},
		"When the power state is unknown, it should not count as off":                           {lifecycle.Provisioned, &maas.Machine{Status: maas.StatusDeployed, Owner: "alice", PowerState: maas.PowerUnknown}, lifecycle.Running, "MachineDeployed", ""},
		"When the power state is error, it should not count as off":                             {lifecycle.Provisioned, &maas.Machine{Status: maas.StatusDeployed, Owner: "alice", PowerState: maas.PowerError}, lifecycle.Running, "MachineDeployed", ""},
		"When MAAS has a status message, the outcome should contain it":                         {lifecycle.Installing, &maas.Machine{Status: maas.StatusFailedDeployment, Owner: "alice", StatusMessage: "Marking node failed"}, lifecycle.Retry, "MachineDeployFailed", "MAAS says: Marking node failed"},
		"When MAAS says why a machine is broken, the outcome should contain it":                 {lifecycle.Provisioned, &maas.Machine{Status: maas.StatusBroken, ErrorDescription: "fan"}, lifecycle.Lost, "MachineBroken", "MAAS says: fan"},
		"When the status message equals the state, the outcome should not repeat it":            {lifecycle.Installing, &maas.Machine{Status: maas.StatusDeploying, Owner: "alice", StatusName: "Deploying", StatusMessage: "Deploying"}, lifecycle.Wait, "MachineDeploying", "MAAS installs it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := lifecycle.Evaluate(tc.stage, tc.machine)
			g.Expect(got.Action).To(Equal(tc.want))
			g.Expect(got.Reason).To(Equal(tc.reason))
			g.Expect(got.Message).To(ContainSubstring(tc.says))
			g.Expect(got.Message).NotTo(ContainSubstring("MAAS says: Deploying"))
		})
	}
}

// TestOwnerless checks that a machine without an owner counts as lost in the states in which an allocated machine
// always has an owner.
func TestOwnerless(t *testing.T) {
	owned := []string{"Allocated", "Deploying", "Deployed", "Failed deployment"}
	for _, status := range maas.Statuses() {
		t.Run("When a machine is "+status.String()+" and without an owner, it should count as lost only if the state needs an owner", func(t *testing.T) {
			g := NewWithT(t)
			for stage := lifecycle.Acquired; stage <= lifecycle.Leaving; stage++ {
				m := maas.Machine{SystemID: "wq4h8c", Hostname: "mole", Status: status, PowerState: maas.PowerOn, Owner: "alice"}
				held := lifecycle.Evaluate(stage, &m)
				m.Owner = ""
				got := lifecycle.Evaluate(stage, &m)
				if stage != lifecycle.Leaving && slices.Contains(owned, status.String()) {
					g.Expect(got.Action).To(BeEquivalentTo("Lost"), "stage %d", stage)
					g.Expect(got.Message).To(ContainSubstring("it has no owner in MAAS"))
					continue
				}
				g.Expect(got).To(Equal(held), "stage %d", stage)
			}
		})
	}
}

func TestSwitchedOff(t *testing.T) {
	for name, tc := range map[string]struct {
		stage lifecycle.Stage
		then  lifecycle.Action
	}{
		"When a machine was never on, it should be powered on and eventually replaced":   {lifecycle.Installing, lifecycle.Retry},
		"When a machine with a node is off, it should be powered on and eventually fail": {lifecycle.Provisioned, lifecycle.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := lifecycle.Evaluate(tc.stage, &maas.Machine{SystemID: "wq4h8c", Status: maas.StatusDeployed, PowerState: maas.PowerOff, PowerType: "ipmi", Owner: "alice"})
			g.Expect(got.Action).To(Equal(lifecycle.PowerOn))
			g.Expect(got.Reason).To(Equal(lifecycle.ReasonPoweredOff))
			g.Expect(got.Limit).To(Equal(lifecycle.BootLimit))
			g.Expect(got.Then).To(Equal(tc.then))
		})
	}
}

func TestTakenOver(t *testing.T) {
	g := NewWithT(t)
	m := &maas.Machine{SystemID: "wq4h8c", Hostname: "mole", Status: maas.StatusDeployed}
	for stage := lifecycle.Acquired; stage <= lifecycle.Leaving; stage++ {
		action, reason, text := lifecycle.Lost, lifecycle.ReasonTakenOver, ": it was released outside Cluster API and allocated again"
		if stage == lifecycle.Leaving {
			action, reason, text = lifecycle.Gone, lifecycle.ReasonReleased, ": it was released and allocated again"
		}
		for _, got := range []lifecycle.Outcome{lifecycle.TakenOver(stage, m), lifecycle.Foreign(stage, m.SystemID)} {
			g.Expect(got.Action).To(Equal(action), "stage %d", stage)
			g.Expect(got.Reason).To(Equal(reason), "stage %d", stage)
			g.Expect(got.Message).To(And(ContainSubstring("wq4h8c"), HaveSuffix(text)))
		}
	}
}
