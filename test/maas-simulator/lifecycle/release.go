// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// CanRelease returns an error if the machine's status does not allow a release. done means that there is nothing to do.
func CanRelease(m *inventory.Machine) (done bool, err error) {
	if m.Status.In(status.Ready, status.Releasing) {
		return true, nil
	}
	if !m.Status.Releasable() {
		return false, problem.Conflict("Machine cannot be released in its current state ('%s').", m.Status)
	}
	return false, nil
}

// Release releases a machine, after erasing its disks if wipe is set.
func (l *Life) Release(m *inventory.Machine, user, comment string, wipe bool) error {
	done, err := CanRelease(m)
	if done || err != nil {
		return err
	}
	if m.PowerState != "off" {
		if err := l.powerFailsCall(m, "off"); err != nil {
			return err
		}
	}
	l.request(m, user, "User releasing node", comment)
	if wipe && !m.Diskless() {
		return l.erase(m)
	}
	return l.release(m)
}

// erase starts the erasing of the disks. The machine stays allocated: the release begins when the disks are erased.
func (l *Life) erase(m *inventory.Machine) error {
	if err := move(m, status.DiskErasing); err != nil {
		return err
	}
	l.stop(m)
	m.Netboot = true
	l.event(m, levelInfo, "Erasing disks", "")
	l.begin(m, taskErase)
	return nil
}

func (l *Life) release(m *inventory.Machine) error {
	if err := move(m, status.Releasing); err != nil {
		return err
	}
	l.stop(m)
	l.beginRelease(m)
	if l.unpowered(m) {
		return l.finalize(m)
	}
	if m.PowerState == "off" {
		// The machine may have been powered on without MAAS.
		m.PowerState = "unknown"
	}
	l.begin(m, taskRelease)
	return nil
}

// unpowered reports whether a release can end without waiting until the power is off.
func (l *Life) unpowered(m *inventory.Machine) bool {
	return !l.hasMetal() && (m.PowerState == "off" || !powered(m))
}

// beginRelease clears the deployment and the allocation's agent_name. The owner, the owner's annotations and the
// addresses stay until endRelease.
func (l *Life) beginRelease(m *inventory.Machine) {
	m.AgentName, m.OSystem, m.Series, m.HWEKernel = "", "", "", ""
	m.UserData, m.VMHost, m.Ephemeral, m.Netboot = nil, false, false, true
	m.Extra["current_installation_result_id"] = nil
	l.event(m, levelInfo, "Releasing", "")
}

// endRelease clears the owner and releases the addresses. The power is off at that time.
func (l *Life) endRelease(m *inventory.Machine) {
	m.Owner, m.Annotations = "", nil
	m.Token = l.DB.NewToken()
	l.rollBackNetwork(m)
	l.event(m, levelInfo, "Released", "")
}

// finalize ends a release.
func (l *Life) finalize(m *inventory.Machine) error {
	to := status.New
	if m.Commissioned {
		to = status.Ready
	}
	if err := move(m, to); err != nil {
		return err
	}
	l.stop(m)
	l.endRelease(m)
	m.ErrorDescription, m.Locked, m.Previous = "", false, to
	if m.Dynamic {
		l.Remove(m)
	}
	return nil
}

var releaseSteps = []step{
	{after: releaseTime, work: workRelease, done: func(l *Life, m *inventory.Machine) error {
		if powered(m) {
			m.PowerState = "off"
		}
		return l.finalize(m)
	}},
}

func releaseTime(l *Life, m *inventory.Machine) time.Duration {
	wait := l.Durations.Power
	if rule, hit := l.Fault(faults.SlowRelease, m); hit {
		wait += time.Duration(rule.Delay)
	}
	return wait
}

func workRelease(ctx context.Context, l *Life, m *inventory.Machine) error {
	if rule, hit := l.Fault(faults.ReleaseFails, m); hit {
		return errors.New(rule.Text("Releasing failed: the machine did not power off"))
	}
	if err := workPowerOff(ctx, l, m); err != nil {
		return err
	}
	return l.Backend.Erase(ctx, m.SystemID)
}

var eraseSteps = []step{
	{after: share(power, 100), work: workNetboot, done: func(l *Life, m *inventory.Machine) error {
		if powered(m) {
			m.PowerState = "on"
		}
		return nil
	}},
	{after: share(erase, 100), work: workErase, done: func(l *Life, m *inventory.Machine) error {
		l.event(m, levelInfo, "Erased disks", "")
		return l.release(m)
	}},
}

func workErase(ctx context.Context, l *Life, m *inventory.Machine) error {
	if rule, hit := l.Fault(faults.EraseFails, m); hit {
		return errors.New(rule.Text("Disk erasing failed"))
	}
	if err := l.Backend.PowerOff(ctx, m.SystemID); err != nil {
		return err
	}
	return l.Backend.Erase(ctx, m.SystemID)
}

// Abort aborts the current operation of a machine. The status changes only after the response: the caller runs the
// returned function then.
func (l *Life) Abort(m *inventory.Machine, user, comment string) (after func(*inventory.Machine) error, err error) {
	from := m.Status
	to, ok := from.Aborted(m.Previous)
	if !ok {
		return nil, problem.Conflict("Cannot abort in current state: node %s is in state %s.", m.SystemID, from)
	}
	l.request(m, user, "User aborting "+abortWords[from].operation, comment)
	l.stop(m)
	l.event(m, levelInfo, abortWords[from].event, "")
	return func(m *inventory.Machine) error {
		if m.Status != from {
			return nil
		}
		m.Status = to
		if to == status.New {
			m.Owner = ""
		}
		l.begin(m, taskPowerOff)
		return nil
	}, nil
}

var abortWords = map[status.Status]struct{ operation, event string }{
	status.Commissioning: {"commissioning", "Aborted commissioning"},
	status.Deploying:     {"deployment", "Aborted deployment"},
	status.DiskErasing:   {"disk erasing", "Aborted disk erasing"},
	status.Testing:       {"testing", "Aborted testing"},
}

// Remove deletes a machine from MAAS. The backend powers off and erases the machine afterwards.
func (l *Life) Remove(m *inventory.Machine) {
	l.stop(m)
	l.DB.Machines.Delete(m.SystemID)
	if l.hasMetal() {
		l.mu.Lock()
		l.gone[m.SystemID] = true
		l.mu.Unlock()
	}
}
