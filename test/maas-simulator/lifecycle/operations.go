// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// commissionable and testable are the statuses in which MAAS offers these actions.
var (
	commissionable = []status.Status{status.New, status.FailedCommissioning, status.Ready, status.Broken, status.FailedTesting, status.Missing}
	testable       = []status.Status{
		status.New, status.FailedCommissioning, status.Missing, status.Ready, status.Reserved, status.Deployed, status.Retired,
		status.Broken, status.Allocated, status.FailedDeployment, status.FailedReleasing, status.FailedDiskErasing, status.RescueMode,
		status.FailedEnteringRescueMode, status.FailedExitingRescueMode, status.FailedTesting,
	}
)

// Commission starts commissioning.
func (l *Life) Commission(m *inventory.Machine, user, comment string) error {
	if !m.Status.In(commissionable...) || m.PowerType == "" {
		return problem.Field("__all__", "Commission is not available because of the current state of the node.")
	}
	m.Previous = m.Status
	if err := move(m, status.Commissioning); err != nil {
		return err
	}
	m.Owner, m.ErrorDescription = user, ""
	l.request(m, user, "User starting node commissioning", comment)
	l.event(m, levelInfo, "Commissioning", "")
	l.begin(m, taskCommission)
	return nil
}

// switchOn is the step that powers on a machine for an ephemeral system.
var switchOn = step{after: share(power, 100), work: workNetboot, done: func(l *Life, m *inventory.Machine) error {
	if powered(m) {
		m.PowerState = "on"
	}
	l.event(m, levelInfo, "Performing PXE boot", "")
	return nil
}}

var commissionSteps = []step{
	switchOn,
	{after: share(commission, 30), done: log("Loading ephemeral")},
	{after: share(commission, 20), done: log("Gathering information")},
	{after: share(commission, 50), work: failing(faults.CommissionFails, "Commissioning scripts failed"), done: func(l *Life, m *inventory.Machine) error {
		m.Status, m.Previous, m.Owner, m.Commissioned = status.Ready, status.Ready, "", true
		m.Extra["commissioning_status"], m.Extra["commissioning_status_name"] = 2, "Passed"
		m.Extra["current_commissioning_result_id"] = l.DB.Next("results")
		l.addressOnBootSubnet(m)
		if powered(m) {
			m.PowerState = "off"
		}
		l.event(m, levelInfo, "Ready", "")
		return nil
	}},
}

// addressOnBootSubnet links an unconfigured boot interface to the first subnet of its VLAN, as commissioning does.
func (l *Life) addressOnBootSubnet(m *inventory.Machine) {
	nic := m.BootInterface()
	if nic == nil || len(nic.Links) > 0 || nic.VLANID == nil {
		return
	}
	s := l.DB.Subnets.Find(func(s *inventory.Subnet) bool { return s.VLANID == *nic.VLANID })
	if s != nil {
		nic.Links = []inventory.Link{{ID: l.DB.Next("links"), Mode: "auto", SubnetID: &s.ID}}
	}
}

// failing returns a work function that does nothing except fail if the machine has the fault.
func failing(kind faults.Kind, text string) func(context.Context, *Life, *inventory.Machine) error {
	return func(_ context.Context, l *Life, m *inventory.Machine) error {
		if rule, hit := l.Fault(kind, m); hit {
			return errors.New(rule.Text(text))
		}
		return nil
	}
}

// Test starts hardware tests. After them, the machine returns to its previous status.
func (l *Life) Test(m *inventory.Machine, user, comment string) error {
	if !m.Status.In(testable...) {
		return problem.Field("__all__", "Test is not available because of the current state of the node.")
	}
	previous := m.Status
	if err := move(m, status.Testing); err != nil {
		return err
	}
	if previous != status.FailedTesting {
		m.Previous = previous
	}
	l.request(m, user, "User starting node testing", comment)
	l.event(m, levelInfo, "Running test", "")
	l.begin(m, taskTest)
	return nil
}

var testSteps = []step{
	switchOn,
	{after: share(test, 100), work: failing(faults.TestFails, "Tests failed"), done: func(l *Life, m *inventory.Machine) error {
		m.Status = m.Previous
		if powered(m) && !m.Status.In(status.Deployed) {
			m.PowerState = "off"
		}
		l.event(m, levelInfo, "Ran tests", "")
		return nil
	}},
}

// OverrideFailedTesting sets a machine with failed tests to Ready, or to Deployed if a system is installed.
func (l *Life) OverrideFailedTesting(m *inventory.Machine, user, comment string) error {
	if m.Status != status.FailedTesting {
		return problem.Conflict("Cannot override testing on a node that is not in Failed testing: node %s is in state %s.", m.SystemID, m.Status)
	}
	m.Status = status.Ready
	if m.OSystem != "" {
		m.Status = status.Deployed
	}
	l.request(m, user, "User overrode 'Failed testing' status", comment)
	return nil
}

// Rescue boots a machine into rescue mode.
func (l *Life) Rescue(m *inventory.Machine, user string) error {
	previous := m.Status
	if err := move(m, status.EnteringRescueMode); err != nil {
		return err
	}
	if !previous.In(status.RescueMode, status.FailedEnteringRescueMode, status.FailedExitingRescueMode) {
		m.Previous = previous
	}
	l.request(m, user, "User starting rescue mode", "")
	l.event(m, levelInfo, "Entering rescue mode", "")
	l.begin(m, taskRescue)
	return nil
}

var rescueSteps = []step{
	switchOn,
	{after: share(rescue, 100), done: func(l *Life, m *inventory.Machine) error {
		m.Status = status.RescueMode
		l.event(m, levelInfo, "Entered rescue mode", "")
		return nil
	}},
}

// ExitRescue ends rescue mode.
func (l *Life) ExitRescue(m *inventory.Machine, user string) error {
	if err := move(m, status.ExitingRescueMode); err != nil {
		return err
	}
	l.request(m, user, "User stopping rescue mode", "")
	l.event(m, levelInfo, "Exiting rescue mode", "")
	l.begin(m, taskExitRescue)
	return nil
}

var exitRescueSteps = []step{
	{after: share(power, 100), work: workNetboot, done: func(l *Life, m *inventory.Machine) error {
		m.Status = m.Previous
		if powered(m) {
			m.PowerState = "off"
			if m.Status == status.Deployed {
				m.PowerState = "on"
			}
		}
		l.event(m, levelInfo, "Exited rescue mode", "")
		return nil
	}},
}

// MarkBroken sets a machine Broken and removes its owner. It clears the deployment like a release. A machine that is on
// keeps its annotations and addresses, because the release of a Broken machine does not continue when its power is off.
func (l *Life) MarkBroken(m *inventory.Machine, user, comment string) error {
	from := m.Status
	if err := status.Move(from, status.Broken); err != nil && !from.Releasable() {
		return problem.Conflict("%s", err.Error())
	}
	l.request(m, user, "User marking node broken", comment)
	if from.Releasable() {
		l.stop(m)
		l.beginRelease(m)
		if l.unpowered(m) {
			l.endRelease(m)
		} else {
			l.begin(m, taskPowerOff)
		}
	}
	if from != status.Broken {
		m.Previous = from
	}
	m.Status, m.Owner, m.ErrorDescription = status.Broken, "", comment
	return nil
}

// MarkFixed sets a broken machine to Ready, or to Deployed, without an owner, if it was Deployed before.
func (l *Life) MarkFixed(m *inventory.Machine, user, comment string) error {
	if m.Status != status.Broken {
		return problem.Conflict("Can't mark a non-broken node as 'Ready'.")
	}
	m.Status = status.Ready
	if m.Previous == status.Deployed {
		m.Status = status.Deployed
	}
	m.ErrorDescription, m.OSystem, m.Series, m.HWEKernel = "", "", "", ""
	m.Extra["current_installation_result_id"] = nil
	l.request(m, user, "User marking node fixed", comment)
	return nil
}
