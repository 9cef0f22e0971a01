// SPDX-License-Identifier: Apache-2.0

package units

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// errOff reports that the manager does not run, or has stopped.
var errOff = errors.New("the machine is shutting down")

// Start starts the units that are not running, with their dependencies. With wait, it waits until each unit is up or
// its first attempt has failed. It returns the errors of the failed attempts.
func (m *Manager) Start(ctx context.Context, wait bool, names ...string) error {
	nodes, err := m.begin(names)
	if err != nil || !wait {
		return err
	}
	var failed []error
	for _, n := range nodes {
		select {
		case <-n.tried:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if n.failure != nil && !n.up() {
			failed = append(failed, fmt.Errorf("starting %s: %w", n.unit.Name, n.failure))
		}
	}
	return errors.Join(failed...)
}

func (m *Manager) begin(names []string) ([]*node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx == nil || m.ctx.Err() != nil {
		return nil, errOff
	}
	return m.launch(names), nil
}

// up reports whether the unit has come up, at the first attempt or at a later one.
func (n *node) up() bool {
	select {
	case <-n.settled:
		return n.ok
	default:
		return false
	}
}

// Stop stops the units and the units that require them, and returns when they are down. It ignores units that do not
// run.
func (m *Manager) Stop(ctx context.Context, names ...string) error {
	_, err := m.halt(ctx, names)
	return err
}

// Restart stops the units and the units that require them, if they run. It then starts the named units, and all units
// that it has stopped. A unit keeps the file that was read at its last start, unless Reload was called since.
func (m *Manager) Restart(ctx context.Context, wait bool, names ...string) error {
	stopped, err := m.halt(ctx, names)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.kept = map[string]*Unit{}
	for _, n := range stopped {
		if !slices.Contains(names, n.unit.Name) {
			names = append(names, n.unit.Name)
		}
		if n.generation == m.generation {
			m.kept[n.unit.Name] = n.unit
		}
	}
	m.mu.Unlock()
	return m.Start(ctx, wait, names...)
}

// Reload makes the manager read unit files again.
func (m *Manager) Reload() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
}

// Kill sends a signal to the processes of units.
func (m *Manager) Kill(signal syscall.Signal, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, m.Group.Signal(name, signal))
	}
	return errors.Join(errs...)
}

// halt stops units and the units that require them, and returns those that were running.
func (m *Manager) halt(ctx context.Context, names []string) ([]*node, error) {
	running := m.dependents(names)
	for _, n := range running {
		n.halt()
	}
	for _, n := range running {
		select {
		case <-n.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("stopping %s: %w", n.unit.Name, context.Cause(ctx))
		}
	}
	return running, nil
}

// dependents returns the running units among the named units and the units that require them.
func (m *Manager) dependents(names []string) []*node {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*node
	names = slices.Clone(names)
	for i := 0; i < len(names); i++ {
		if n := m.nodes[names[i]]; n != nil && n.alive() {
			found = append(found, n)
		}
		for name, n := range m.nodes {
			_, _, requires := n.unit.dependencies()
			requires = append(requires, n.unit.words("Unit.PartOf")...)
			if slices.Contains(requires, names[i]) && n.alive() && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return found
}

// FullName returns the name of a unit with its suffix. A name without one means a service.
func FullName(name string) string {
	for _, suffix := range []string{".service", ".target", ".slice", ".socket", ".timer", ".mount", ".path", ".scope", ".swap"} {
		if strings.HasSuffix(name, suffix) {
			return name
		}
	}
	return name + ".service"
}
