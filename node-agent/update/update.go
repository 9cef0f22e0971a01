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
	// maxStarts is how often a machine is brought to a configuration before it is given up.
	maxStarts = 3
)

// own are the units of a node. What runs in them is restarted by Bring.
var own = []string{"hypershift-containerd.service", "kubelet.service", "hypershift-node-agent.service", nodeplan.FollowUnit}

// stays is what a machine keeps, whatever its configuration says: its identity, and how it asks for another configuration.
var stays = []string{nodeplan.BootstrapKubeconfig, nodeplan.ServerCA, nodeplan.ServerEndpoint, nodeplan.Program, nodeplan.Path}

// databases hold the machine's users.
var databases = []string{"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"}

// Machine is one that goes from one configuration to another.
type Machine struct {
	Host *host.Host
	// Bring brings the machine to the plan at nodeplan.Path, and restarts the node's units.
	Bring func(ctx context.Context) error
	// Healthy waits until the Node is Ready with what was brought. Its error says why it is not.
	Healthy func(ctx context.Context) error
}

// Begin keeps what the machine has, and writes what it is on its way to. The machine is not changed.
func (m *Machine) Begin(target *nodeplan.Plan) error {
	if err := m.begin(target); err != nil {
		// What was kept takes room that the disk may not have.
		return errors.Join(err, cleanUp(m.Host))
	}
	return nil
}

func (m *Machine) begin(target *nodeplan.Plan) error {
	former, err := m.plan(nodeplan.Path)
	if err != nil {
		return err
	}
	// What the former configuration brought is no file of the image.
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
		return fmt.Errorf("keeping the plan: %w", err)
	}
	if _, err := m.Host.Write(roomPath, make([]byte, roomSize), 0o600); err != nil {
		return fmt.Errorf("keeping room for the way back: %w", err)
	}
	if err := keep(m.Host, m.touched(former, target)); err != nil {
		return err
	}
	return State{Phase: Switching, Hash: target.ConfigHash, Restart: m.changedUnits(target)}.save(m.Host)
}

// plan reads a plan that the machine has.
func (m *Machine) plan(path string) (*nodeplan.Plan, error) {
	raw, err := m.Host.Read(path)
	if err != nil {
		return nil, err
	}
	return nodeplan.Parse(raw)
}

// touched is all that an update from one plan to another may change.
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

// unitsOf are the names of the units that a plan has.
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

// unitOf is the unit that a file is of: one of its drop-ins, or itself.
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

// changedUnits are those of the user that the plan has otherwise than the machine.
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

// Resume brings a machine that starts, or starts again, to the whole of what it is on its way to. It does not wait for the Node.
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

// Settle goes on until the machine runs one whole configuration, and returns how that went: the zero State for the wanted one.
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

// conclude takes the machine to its next state, when it was brought to this one and is healthy, or is not.
func (m *Machine) conclude(s State, unhealthy error) error {
	switch {
	case s.Phase == Switching && unhealthy != nil:
		_, err := m.turn(s, unhealthy)
		return err
	case s.Phase == Switching:
		// From here on there is no way back.
		if err := Forget(m.Host); err != nil {
			return err
		}
	case unhealthy != nil:
		if err := (State{Phase: Failed, Hash: s.Hash, Message: s.Message + "; with its former configuration " + unhealthy.Error()}).save(m.Host); err != nil {
			return err
		}
	default:
		if err := (State{Phase: RolledBack, Hash: s.Hash, Message: s.Message}).save(m.Host); err != nil {
			return err
		}
	}
	return cleanUp(m.Host)
}

// turn has the machine go back.
func (m *Machine) turn(s State, why error) (State, error) {
	m.Host.Say("going back to the former configuration: %v", why)
	if err := m.Host.Remove(roomPath); err != nil {
		return s, err
	}
	back := State{Phase: Restoring, Hash: s.Hash, Message: why.Error(), Restart: s.Restart}
	return back, back.save(m.Host)
}
