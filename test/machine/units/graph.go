// SPDX-License-Identifier: Apache-2.0

package units

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// node is a unit in the graph.
type node struct {
	unit *Unit
	err  error // The reason why it cannot be started.
	// generation is the manager's generation when the unit's file was read.
	generation int
	// after are the units that must settle before this one starts, and that stop after it.
	after    []*node
	requires []*node
	before   []*node // The reverse of after; guarded by Manager.mu once the node runs.
	// settled is closed when the unit is up for the first time, or has ended without coming up; ok reports which of
	// these happened.
	settled chan struct{}
	ok      bool // Valid once settled is closed.
	// tried is closed when the unit has settled or its first attempt has failed; failure is then the reason.
	tried   chan struct{}
	trying  sync.Once
	failure error
	// stop is closed when only this unit must stop; done is closed when it has ended and will not restart.
	stop     chan struct{}
	stopping sync.Once
	done     chan struct{}
}

func newNode(unit *Unit, err error) *node {
	return &node{
		unit: unit, err: err, settled: make(chan struct{}), tried: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// try records the result of the first attempt.
func (n *node) try(err error) {
	n.trying.Do(func() {
		n.failure = err
		close(n.tried)
	})
}

func (n *node) halt() { n.stopping.Do(func() { close(n.stop) }) }

// alive reports whether the unit has not ended.
func (n *node) alive() bool {
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

// graph loads the units and their dependencies. It does not change units that already run.
func (m *Manager) graph(names []string, running map[string]*node) map[string]*node {
	nodes := map[string]*node{}
	queue := slices.Clone(names)
	optional := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if nodes[name] != nil || running[name] != nil && running[name].alive() {
			continue
		}
		unit, err := m.load(name)
		if optional[name] && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrMasked)) {
			continue
		}
		n := newNode(unit, err)
		nodes[name] = n
		if err != nil {
			n.unit = &Unit{Name: name}
			continue
		}
		_, wants, requires := unit.dependencies()
		for _, want := range wants {
			optional[want] = true
		}
		queue = append(append(queue, requires...), wants...)
	}
	m.connect(nodes, running)
	return nodes
}

// load reads a unit. Targets and slices need no file; a target also wants the units in its folders.
func (m *Manager) load(name string) (*Unit, error) {
	if unit := m.kept[name]; unit != nil {
		return unit, nil
	}
	unit, err := Load(name, m.Dirs)
	if !isTarget(name) {
		return unit, err
	}
	if errors.Is(err, ErrNotFound) {
		unit, err = &Unit{Name: name, settings: map[string][]string{}}, nil
	}
	if err != nil {
		return unit, err
	}
	for kind, key := range map[string]string{"wants": "Unit.Wants", "requires": "Unit.Requires"} {
		for _, dir := range m.Dirs {
			entries, err := os.ReadDir(filepath.Join(dir, name+"."+kind))
			if err != nil {
				continue // Most targets have no folder.
			}
			for _, entry := range entries {
				unit.set(key, entry.Name())
			}
		}
	}
	for _, needed := range bootOrder[name] {
		unit.set("Unit.Requires", needed)
		unit.set("Unit.After", needed)
	}
	return unit, nil
}

// bootOrder maps the targets of every boot to the targets that they depend on.
var bootOrder = map[string][]string{
	"default.target": {"multi-user.target"}, "multi-user.target": {"basic.target"}, "basic.target": {"sysinit.target"},
}

func isTarget(name string) bool {
	return strings.HasSuffix(name, ".target") || strings.HasSuffix(name, ".slice")
}

// connect sets the edges of the nodes, to each other and to running nodes.
func (m *Manager) connect(nodes, running map[string]*node) {
	find := func(name string) *node {
		if n := nodes[name]; n != nil {
			return n
		}
		if n := running[name]; n != nil && n.alive() {
			return n
		}
		return nil
	}
	for _, n := range nodes {
		for _, name := range orderedAfter(n.unit) {
			order(find(name), n, nodes)
		}
		for _, name := range n.unit.words("Unit.Before") {
			order(n, find(name), nodes)
		}
		_, wants, requires := n.unit.dependencies()
		for _, name := range requires {
			if required := find(name); required != nil {
				n.requires = append(n.requires, required)
			}
		}
		if !isTarget(n.unit.Name) {
			continue
		}
		for _, name := range append(requires, wants...) {
			if first := find(name); first != nil && gathered(n.unit, first.unit) {
				order(first, n, nodes)
			}
		}
	}
	breakCycles(nodes)
}

// order makes second start after first. A unit that already runs no longer waits for others.
func order(first, second *node, starting map[string]*node) {
	if first == nil || second == nil || first == second || starting[second.unit.Name] != second || slices.Contains(second.after, first) {
		return
	}
	second.after = append(second.after, first)
	first.before = append(first.before, second)
}

// orderedAfter returns the units that a unit starts after: those in its After setting and, unless DefaultDependencies
// is no, the targets of the boot.
func orderedAfter(u *Unit) []string {
	after, _, _ := u.dependencies()
	if isTarget(u.Name) || u.last("Unit.DefaultDependencies") == "no" {
		return after
	}
	return append(slices.Clone(after), "sysinit.target", "basic.target")
}

// gathered reports whether a target waits for a unit that it pulls in. It does not if the unit itself waits for the
// target.
func gathered(target, u *Unit) bool {
	return u.last("Unit.DefaultDependencies") != "no" && target.last("Unit.DefaultDependencies") != "no" &&
		!slices.Contains(orderedAfter(u), target.Name)
}

// breakCycles removes the edges that close a cycle, as systemd does: a unit that waits for itself would never start.
func breakCycles(nodes map[string]*node) {
	const visiting, visited = 1, 2
	state := map[*node]int{}
	var visit func(n *node)
	visit = func(n *node) {
		state[n] = visiting
		n.after = slices.DeleteFunc(n.after, func(first *node) bool {
			if nodes[first.unit.Name] != first {
				return false // It already runs.
			}
			if state[first] == 0 {
				visit(first)
			}
			if state[first] != visiting {
				return false
			}
			first.before = slices.DeleteFunc(first.before, func(second *node) bool { return second == n })
			return true
		})
		state[n] = visited
	}
	for _, n := range nodes {
		if state[n] == 0 {
			visit(n)
		}
	}
}
