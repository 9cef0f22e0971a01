// SPDX-License-Identifier: Apache-2.0

package update

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/hypershift/node-agent/apply"
	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
)

const (
	unitDir = nodeplan.UnitDir
	// maxStarts is the maximum number of attempts to apply a configuration.
	maxStarts = 3
)

// own lists the units of a node. Bring restarts them.
var own = []string{"hypershift-containerd.service", "kubelet.service", "hypershift-node-agent.service", nodeplan.FollowUnit}

// stays lists files that an update never changes: the machine's credentials, and its access to the ignition-server.
var stays = []string{nodeplan.BootstrapKubeconfig, nodeplan.ServerCA, nodeplan.ServerEndpoint, nodeplan.Program, nodeplan.Path}

// databases lists the files with the users and groups of the machine.
var databases = []string{"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"}

// Machine is a machine that is updated.
type Machine struct {
	Host *host.Host
	// Bring applies the plan at nodeplan.Path and restarts the units of the node.
	Bring func(ctx context.Context) error
	// Healthy waits until the Node is Ready with the applied configuration. Its error gives the reason if it is not.
	Healthy func(ctx context.Context) error
}

// Begin creates the backup and writes the target of the update. The configuration of the machine is not changed.
func (m *Machine) Begin(target *nodeplan.Plan) error {
	if err := m.begin(target); err != nil {
		// The backup may take space that the disk lacks.
		return errors.Join(err, cleanUp(m.Host))
	}
	return nil
}

func (m *Machine) begin(target *nodeplan.Plan) error {
	former, err := m.plan(nodeplan.Path)
	if err != nil {
		return err
	}
	// A file of the previous configuration is not a file of the image.
	for i := range target.Files {
		if slices.Contains(former.Paths(), target.Files[i].Path) {
			target.Files[i].Keep = false
		}
	}
	raw, err := json.Marshal(target)
	if err != nil {
		return err
	}
	if _, err := m.Host.Write(targetPath, raw, 0o600); err != nil {
		return fmt.Errorf("storing the plan: %w", err)
	}
	if _, err := m.Host.Write(roomPath, make([]byte, roomSize), 0o600); err != nil {
		return fmt.Errorf("reserving disk space for a rollback: %w", err)
	}
	if err := keep(m.Host, m.touched(former, target)); err != nil {
		return err
	}
	return State{Phase: Switching, Hash: target.ConfigHash, Restart: m.changedUnits(target)}.save(m.Host)
}

// plan reads a plan on the machine.
func (m *Machine) plan(path string) (*nodeplan.Plan, error) {
	raw, err := m.Host.Read(path)
	if err != nil {
		return nil, err
	}
	return nodeplan.Parse(raw)
}

// touched returns all paths that an update from one plan to another may change.
func (m *Machine) touched(former, target *nodeplan.Plan) []string {
	paths := slices.Concat([]string{nodeplan.Path, apply.Mark}, former.Paths(), target.Paths())
	for _, unit := range slices.Concat(unitsOf(former), unitsOf(target)) {
		paths = append(paths, unitDir+unit)
		paths = append(paths, enabledBy(m.Host, unit)...)
	}
	if len(target.Users)+len(target.Groups) > 0 {
		paths = append(paths, databases...)
	}
	for _, u := range target.Users {
		paths = append(paths, apply.KeysOf(m.Host, u))
	}
	return slices.DeleteFunc(paths, func(p string) bool { return p == nodeplan.Program })
}

// unitsOf returns the names of the units in a plan.
func unitsOf(p *nodeplan.Plan) []string {
	var names []string
	for _, u := range p.Units {
		names = append(names, u.Name)
	}
	for _, file := range p.Owned {
		if name := unitOf(file); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unitOf returns the unit to which a file belongs: the unit itself or one of its drop-ins.
func unitOf(file string) string {
	name, ok := strings.CutPrefix(file, unitDir)
	if !ok {
		return ""
	}
	unit, dropIn, _ := strings.Cut(name, "/")
	if dropIn != "" {
		return strings.TrimSuffix(unit, ".d")
	}
	return unit
}

// changedUnits returns the units of the user that differ between the plan and the machine.
func (m *Machine) changedUnits(target *nodeplan.Plan) []string {
	var changed []string
	for _, u := range target.Units {
		if slices.Contains(own, u.Name) || u.Masked || u.Enabled == nil || !*u.Enabled {
			continue
		}
		contents := map[string]string{unitDir + u.Name: u.Content}
		for _, d := range u.DropIns {
			contents[unitDir+u.Name+".d/"+d.Name] = d.Content
		}
		for _, file := range u.Paths() {
			if present, err := m.Host.Read(file); err != nil || !bytes.Equal(present, []byte(contents[file])) {
				changed = append(changed, u.Name)
				break
			}
		}
	}
	return changed
}

// Resume applies the target configuration completely when the machine starts. It does not wait for the Node.
func (m *Machine) Resume(ctx context.Context) error {
	s, err := Load(m.Host)
	if err != nil {
		return err
	}
	if s.Phase == Switching {
		err := m.forward(ctx, &s)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if s, err = m.turn(s, err); err != nil {
			return err
		}
	}
	if s.Phase == Restoring {
		return m.back(ctx, s)
	}
	return cleanUp(m.Host)
}

// Settle continues the update until the machine runs one complete configuration. It returns the resulting state, which
// is the zero State if the desired configuration runs.
func (m *Machine) Settle(ctx context.Context) (State, error) {
	for {
		s, err := Load(m.Host)
		if err != nil {
			return s, err
		}
		if !s.Underway() {
			return s, cleanUp(m.Host)
		}
		if s.Boot != boot(m.Host) {
			if err := m.Resume(ctx); err != nil {
				return s, err
			}
			continue
		}
		unhealthy := m.Healthy(ctx)
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err := m.conclude(s, unhealthy); err != nil {
			return s, err
		}
	}
}

// conclude saves the next state after the configuration was applied; unhealthy is nil if the Node is healthy.
func (m *Machine) conclude(s State, unhealthy error) error {
	switch {
	case s.Phase == Switching && unhealthy != nil:
		_, err := m.turn(s, unhealthy)
		return err
	case s.Phase == Switching:
		// No rollback is possible from here on.
		if err := Forget(m.Host); err != nil {
			return err
		}
	case unhealthy != nil:
		if err := (State{Phase: Failed, Hash: s.Hash, Message: s.Message + "; with its previous configuration " + unhealthy.Error()}).save(m.Host); err != nil {
			return err
		}
	default:
		if err := (State{Phase: RolledBack, Hash: s.Hash, Message: s.Message}).save(m.Host); err != nil {
			return err
		}
	}
	return cleanUp(m.Host)
}

// turn starts the rollback.
func (m *Machine) turn(s State, why error) (State, error) {
	m.Host.Say("rolling back to the previous configuration: %v", why)
	if err := m.Host.Remove(roomPath); err != nil {
		return s, err
	}
	back := State{Phase: Restoring, Hash: s.Hash, Message: why.Error(), Restart: s.Restart}
	return back, back.save(m.Host)
}
