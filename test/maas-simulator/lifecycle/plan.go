// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// step is one step of a task of a machine.
type step struct {
	// after returns the time since the previous step. A negative time means that the step waits for an external event.
	after func(*Life, *inventory.Machine) time.Duration
	// work runs outside of the database; nil means no work.
	work func(context.Context, *Life, *inventory.Machine) error
	// done updates the machine after the work.
	done func(*Life, *inventory.Machine) error
}

// Names of the tasks, stored in Task.Name.
const (
	taskDeploy     = "deploy"
	taskRelease    = "release"
	taskErase      = "erase"
	taskCommission = "commission"
	taskTest       = "test"
	taskRescue     = "rescue"
	taskExitRescue = "exit-rescue"
	taskPowerOn    = "power-on"
	taskPowerOff   = "power-off"
	taskLosePower  = "lose-power"
)

// plans contains the steps of every task. init fills it, because steps refer to functions that begin other tasks.
var plans map[string][]step

func init() {
	plans = map[string][]step{
		taskDeploy: deploySteps, taskRelease: releaseSteps, taskErase: eraseSteps, taskCommission: commissionSteps, taskTest: testSteps,
		taskRescue: rescueSteps, taskExitRescue: exitRescueSteps, taskPowerOn: powerOnSteps, taskPowerOff: powerOffSteps,
		taskLosePower: losePowerSteps,
	}
}

// begin starts a task of the machine. It replaces the current one.
func (l *Life) begin(m *inventory.Machine, task string) {
	m.TaskSeq++
	m.Task = &inventory.Task{Name: task, Seq: m.TaskSeq}
	if limit := l.Durations.limit(task); limit > 0 {
		m.Task.Deadline = l.Clock.Now().Add(limit)
	}
	l.schedule(m)
}

// limit returns the timeout of a task; zero means no timeout.
func (d Durations) limit(task string) time.Duration {
	switch task {
	case taskDeploy:
		return d.DeployTimeout
	case taskRelease, taskExitRescue:
		return d.ReleaseTimeout
	case taskCommission, taskTest, taskRescue:
		return d.NodeTimeout
	}
	return 0
}

// stop ends the machine's task and cancels a running step.
func (l *Life) stop(m *inventory.Machine) {
	m.TaskSeq++
	m.Task = nil
}

func (l *Life) schedule(m *inventory.Machine) {
	steps := plans[m.Task.Name]
	if m.Task.Step >= len(steps) {
		m.Task = nil
		return
	}
	m.Task.Due = time.Time{}
	if wait := steps[m.Task.Step].after(l, m); wait >= 0 {
		m.Task.Due = l.Clock.Now().Add(wait)
	}
}

// advance runs the next step of a machine's task.
func (l *Life) advance(ctx context.Context, m *inventory.Machine) error {
	var err error
	now := l.Clock.Now()
	if m.Task.Deadline.IsZero() || now.Before(m.Task.Deadline) {
		if work := plans[m.Task.Name][m.Task.Step].work; work != nil {
			err = work(ctx, l, m)
		}
	} else {
		err = fmt.Errorf("Machine operation '%s' timed out after %s.", m.Status, l.Durations.limit(m.Task.Name))
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // The task was replaced, or the process ends and runs the step again after its restart.
	}
	return l.DB.Update(func() error {
		fresh := l.DB.Machines.Edit(m.SystemID)
		if fresh == nil || fresh.Task == nil || fresh.Task.Seq != m.Task.Seq || fresh.Task.Step != m.Task.Step {
			return nil
		}
		if errors.Is(err, errUnheard) {
			l.wait(fresh)
			return nil
		}
		if err != nil {
			l.Fail(fresh, err.Error())
			return nil //nolint:nilerr // It is the machine's failure, and the transaction stands.
		}
		if err := plans[fresh.Task.Name][fresh.Task.Step].done(l, fresh); err != nil {
			return err
		}
		if fresh.Task != nil && fresh.Task.Seq == m.Task.Seq {
			fresh.Task.Step++
			l.schedule(fresh)
		}
		return nil
	})
}

// wait leaves the task waiting for its timeout. A task without a timeout ends, and the machine does not change.
func (l *Life) wait(m *inventory.Machine) {
	m.Task.Due = time.Time{}
	if m.Task.Deadline.IsZero() {
		l.stop(m)
	}
}

// Fail ends the machine's operation with a failure.
func (l *Life) Fail(m *inventory.Machine, reason string) {
	from := m.Status
	wasDeploying := from == status.Deploying
	l.stop(m)
	to, ok := from.Failed()
	if !ok {
		l.event(m, levelError, "Failed to power on node", reason)
		return
	}
	m.Status = to
	m.ErrorDescription = reason
	if wasDeploying {
		l.event(m, levelError, "Node installation failure", reason)
	}
	l.event(m, levelError, "Marking node failed", reason)
}

// Adopt starts the deployed machines that were on. They may have stopped together with the process that wrote this
// state. It must run inside Update.
func (l *Life) Adopt() {
	for _, m := range l.DB.Machines.All() {
		if m.Task == nil && l.hasMetal() && m.Status == status.Deployed && m.PowerState == "on" {
			l.begin(l.DB.Machines.Edit(m.SystemID), taskPowerOn)
		}
	}
}

// resumed maps transient statuses to their tasks.
var resumed = map[status.Status]string{
	status.Commissioning: taskCommission, status.Testing: taskTest, status.DiskErasing: taskErase, status.Releasing: taskRelease,
	status.Deploying: taskDeploy, status.EnteringRescueMode: taskRescue, status.ExitingRescueMode: taskExitRescue,
}

// Resume continues the operation of a machine with a transient status in the seed. Without it, the machine keeps that
// status.
func (l *Life) Resume(m *inventory.Machine) error {
	task, moving := resumed[m.Status]
	if !moving || m.Task != nil {
		return fmt.Errorf("machine %s is %s: it has no operation to resume", m.Hostname, m.Status)
	}
	l.begin(m, task)
	return nil
}

// share returns a percentage of a duration as a step's time.
func share(of func(Durations) time.Duration, percent int64) func(*Life, *inventory.Machine) time.Duration {
	return func(l *Life, _ *inventory.Machine) time.Duration {
		return of(l.Durations) * time.Duration(percent) / 100
	}
}

func power(d Durations) time.Duration      { return d.Power }
func deploy(d Durations) time.Duration     { return d.Deploy }
func commission(d Durations) time.Duration { return d.Commission }
func test(d Durations) time.Duration       { return d.Test }
func erase(d Durations) time.Duration      { return d.Erase }
func rescue(d Durations) time.Duration     { return d.Rescue }
