// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// Acquire allocates a machine to a user.
func (l *Life) Acquire(m *inventory.Machine, user, agent, comment string) error {
	if err := move(m, status.Allocated); err != nil {
		return err
	}
	m.Owner, m.AgentName = user, agent
	l.request(m, user, "User acquiring node", comment)
	return nil
}

// move changes the status, or returns MAAS's error message.
func move(m *inventory.Machine, to status.Status) error {
	if err := status.Move(m.Status, to); err != nil {
		return problem.Conflict("%s", err.Error())
	}
	m.Status = to
	return nil
}

// Deployment contains the parameters of a deploy request, after defaults are set.
type Deployment struct {
	User, Comment string
	// Agent replaces the allocation's agent_name if it is not empty.
	Agent                      string
	OSystem, Series, HWEKernel string
	UserData                   []byte
	Ephemeral, VMHost          bool
}

// CanDeploy returns an error if the machine's status does not allow a deployment.
func CanDeploy(m *inventory.Machine) error {
	if !m.Status.In(status.Ready, status.Allocated) {
		return problem.Conflict("Can't deploy a machine that is in the '%s' state", m.Status)
	}
	return nil
}

// Deploy begins a deployment. Start assigns the addresses after the response.
func (l *Life) Deploy(m *inventory.Machine, d Deployment) error {
	if err := CanDeploy(m); err != nil {
		return err
	}
	if m.Status == status.Ready {
		if err := l.Acquire(m, d.User, d.Agent, ""); err != nil {
			return err
		}
	}
	if !m.HasNetwork() {
		return problem.Field("network", "Node must be configured to use a network")
	}
	if err := l.powerFailsCall(m, "on"); err != nil {
		return err
	}
	if d.Agent != "" {
		m.AgentName = d.Agent
	}
	if err := move(m, status.Deploying); err != nil {
		return err
	}
	empty := ""
	m.OSystem, m.Series, m.HWEKernel, m.MinHWEKernel = d.OSystem, d.Series, d.HWEKernel, &empty
	m.UserData, m.Ephemeral, m.VMHost, m.Netboot = d.UserData, d.Ephemeral || m.Diskless(), d.VMHost, true
	m.ErrorDescription = ""
	m.Extra["current_installation_result_id"] = l.DB.Next("results")
	l.request(m, d.User, "User starting deployment", d.Comment)
	l.event(m, levelInfo, "Deploying", "")
	return nil
}

// Start assigns addresses to a deploying machine and powers it on. If that fails, for example because no address is
// free, the machine returns to Allocated. It then keeps the image.
func (l *Life) Start(m *inventory.Machine) error {
	if m.Status != status.Deploying {
		return nil
	}
	err := l.assignAuto(m)
	if rule, hit := l.Fault(faults.DeployReverts, m); hit && err == nil {
		err = problem.Text(rule.Code(), "%s", rule.Text("The deployment could not be started."))
	}
	if err != nil {
		l.releaseAuto(m)
		m.Status = status.Allocated
		return err
	}
	l.begin(m, taskDeploy)
	return nil
}

var deploySteps = []step{
	{after: share(power, 100), work: workNetboot, done: func(l *Life, m *inventory.Machine) error {
		if powered(m) {
			m.PowerState = "on"
		}
		l.event(m, levelInfo, "Performing PXE boot", "")
		return nil
	}},
	{after: share(deploy, 15), done: log("Loading ephemeral")},
	{after: share(deploy, 15), done: log("Configuring storage")},
	{after: share(deploy, 10), done: log("Installing OS")},
	{after: share(deploy, 40), work: workInstall, done: log("Configuring OS")},
	{after: share(deploy, 10), done: func(l *Life, m *inventory.Machine) error {
		m.Netboot = m.Ephemeral
		l.event(m, levelInfo, "Rebooting", "")
		return nil
	}},
	{after: share(power, 0), work: workBoot, done: log("Loading deployed OS")},
	{after: bootTime, done: func(l *Life, m *inventory.Machine) error { return l.OSReady(m) }},
}

func log(kind string) func(*Life, *inventory.Machine) error {
	return func(l *Life, m *inventory.Machine) error {
		l.event(m, levelInfo, kind, "")
		return nil
	}
}

// workNetboot boots the installer. The backend is not involved.
func workNetboot(_ context.Context, l *Life, m *inventory.Machine) error {
	return l.powerFault(m, "on")
}

func workInstall(ctx context.Context, l *Life, m *inventory.Machine) error {
	if rule, hit := l.Fault(faults.DeployFails, m); hit {
		return errors.New(rule.Text("curtin: writing the image to disk failed"))
	}
	if rule, hit := l.Fault(faults.BrokenOnDeploy, m); hit {
		return l.DB.Update(func() error {
			fresh := l.DB.Machines.Edit(m.SystemID)
			if fresh == nil || fresh.Status != status.Deploying {
				return nil
			}
			if err := l.MarkBroken(fresh, fresh.Owner, rule.Text("hardware failure")); err != nil {
				return err
			}
			l.event(fresh, levelError, "Marking node broken", fresh.ErrorDescription)
			return nil
		})
	}
	if m.Ephemeral {
		return nil
	}
	spec, err := l.spec(m.SystemID)
	if err != nil {
		return err
	}
	if err := l.Backend.Install(ctx, spec); err != nil {
		return fmt.Errorf("curtin: installing %s/%s failed: %w", spec.OSystem, spec.Series, err)
	}
	return nil
}

// workBoot boots the deployed system. The machine was on for the installer, so it is powered off first.
func workBoot(ctx context.Context, l *Life, m *inventory.Machine) error {
	if err := l.Backend.PowerOff(ctx, m.SystemID); err != nil {
		return fmt.Errorf("rebooting: %w", err)
	}
	return workPowerOn(ctx, l, m)
}

// bootTime returns the time until the system reports that it is up. The result is negative if the machine reports that
// itself.
func bootTime(l *Life, m *inventory.Machine) time.Duration {
	if _, hangs := l.Fault(faults.BootHangs, m); hangs || l.hasMetal() {
		return -1
	}
	return share(deploy, 10)(l, m)
}

// OSReady sets a deploying machine Deployed. A machine is ready when it has fetched its user-data, or when a future VM
// host is configured. It does nothing for a machine that is not deploying.
func (l *Life) OSReady(m *inventory.Machine) error {
	if m.Status != status.Deploying {
		return nil
	}
	if m.VMHost {
		m.AgentName = AgentOfVMHost
		if err := l.registerVMHost(m); err != nil {
			l.Fail(m, err.Error())
			return nil
		}
	}
	if err := move(m, status.Deployed); err != nil {
		return err
	}
	l.stop(m)
	m.Previous = status.Deployed
	l.event(m, levelInfo, "Image Deployed", fmt.Sprintf("deployed %s/%s/%s", m.OSystem, m.Series, m.Architecture))
	l.event(m, levelInfo, "Deployed", "")
	now := l.Clock.Now()
	for _, r := range l.DB.BootResources.All() {
		if r.Name == m.OSystem+"/"+m.Series || m.OSystem == "custom" && r.Name == m.Series {
			l.DB.BootResources.Edit(r.ID).LastDeployed = &now
		}
	}
	return nil
}
