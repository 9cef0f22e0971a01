// SPDX-License-Identifier: Apache-2.0

package update

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/hypershift/support/nodeplan"
)

// forward applies the desired configuration. Each of its steps is idempotent.
func (m *Machine) forward(ctx context.Context, s *State) error {
	if s.Starts >= maxStarts {
		return fmt.Errorf("the machine was started %d times during the update and did not reach the configuration", s.Starts)
	}
	s.Starts++
	s.Boot = ""
	if err := s.save(m.Host); err != nil {
		return err
	}
	raw, err := m.Host.Read(targetPath)
	if err != nil {
		return err
	}
	target, err := nodeplan.Parse(raw)
	if err != nil {
		return err
	}
	if err := m.removeOld(ctx, target); err != nil {
		return err
	}
	if _, err := m.Host.Write(nodeplan.Path, raw, 0o600); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return m.bring(ctx, *s)
}

// removeOld removes what the previous configuration has and the desired one lacks. The backup contains it.
func (m *Machine) removeOld(ctx context.Context, target *nodeplan.Plan) error {
	former, err := m.former()
	if err != nil {
		return err
	}
	for _, unit := range unitsOf(former) {
		gone := !slices.Contains(unitsOf(target), unit) && !slices.Contains(own, unit) && slices.Contains(former.Paths(), unitDir+unit)
		if gone && m.Host.Exists(unitDir+unit) {
			if err := m.Host.Do(ctx, "systemctl", "disable", "--now", unit); err != nil {
				m.Host.Say("unit %s, which the configuration no longer has, is not stopped: %v", unit, err)
			}
		}
	}
	wanted := slices.Concat(target.Paths(), stays)
	for _, file := range former.Paths() {
		if slices.Contains(wanted, file) || slices.Contains(own, unitOf(file)) && file == unitDir+unitOf(file) {
			continue
		}
		if err := m.Host.Remove(file); err != nil {
			return fmt.Errorf("removing %s, which the configuration no longer has: %w", file, err)
		}
	}
	return nil
}

// former returns the previous plan.
func (m *Machine) former() (*nodeplan.Plan, error) {
	index, err := readIndex(m.Host)
	if err != nil {
		return nil, err
	}
	for _, e := range index {
		if e.Path == nodeplan.Path {
			return m.plan(beforeDir + "/" + e.Content)
		}
	}
	return nil, errors.New("the previous plan was not saved")
}

// back restores the previous configuration.
func (m *Machine) back(ctx context.Context, s State) error {
	index, err := readIndex(m.Host)
	if err != nil {
		return err
	}
	known := func(path string) bool {
		return slices.ContainsFunc(index, func(e entry) bool { return e.Path == path && e.Kind != "" })
	}
	units, err := m.allUnits()
	if err != nil {
		return err
	}
	for _, unit := range units {
		if err := m.disable(ctx, unit, known); err != nil {
			return err
		}
	}
	if err := restore(m.Host, index); err != nil {
		return err
	}
	if err := m.bring(ctx, s); err != nil {
		return err
	}
	for _, unit := range units {
		if !slices.Contains(own, unit) && len(enabledBy(m.Host, unit)) > 0 {
			if err := m.Host.Do(ctx, "systemctl", "start", "--no-block", unit); err != nil {
				m.Host.Say("unit %s does not start: %v", unit, err)
			}
		}
	}
	return nil
}

// disable stops a unit that the previous configuration does not have, and removes the links that would start the unit
// and did not exist before.
func (m *Machine) disable(ctx context.Context, unit string, known func(path string) bool) error {
	if !known(unitDir+unit) && m.Host.Exists(unitDir+unit) {
		if err := m.Host.Do(ctx, "systemctl", "disable", "--now", unit); err != nil {
			m.Host.Say("unit %s, which the previous configuration does not have, is not stopped: %v", unit, err)
		}
	}
	for _, link := range enabledBy(m.Host, unit) {
		if known(link) {
			continue
		}
		if err := m.Host.Remove(link); err != nil {
			return err
		}
	}
	return nil
}

// allUnits returns the units of the previous plan and of the desired one.
func (m *Machine) allUnits() ([]string, error) {
	former, err := m.former()
	if err != nil {
		return nil, err
	}
	target, err := m.plan(targetPath)
	if err != nil {
		return nil, err
	}
	units := slices.Concat(unitsOf(former), unitsOf(target))
	slices.Sort(units)
	return slices.Compact(units), nil
}

// bring applies the current plan of the machine, and records the boot in which it did.
func (m *Machine) bring(ctx context.Context, s State) error {
	if err := m.Bring(ctx); err != nil {
		return err
	}
	for _, unit := range s.Restart {
		if err := m.Host.Do(ctx, "systemctl", "try-restart", unit); err != nil {
			m.Host.Say("unit %s does not start again: %v", unit, err)
		}
	}
	s.Boot = boot(m.Host)
	return s.save(m.Host)
}
