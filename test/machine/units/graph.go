package units

import (
	"errors"
	"slices"
	"strings"
)

// node is a unit in the graph.
type node struct {
	unit *Unit
	err  error // why it cannot be started
	// after are the units that must be settled before this one starts, and that stop after it.
	after    []*node
	requires []*node
	before   []*node // the reverse of after
	// settled is closed when the unit is up, or will not come up for now.
	settled chan struct{}
	ok      bool // valid once settled is closed
	done    chan struct{}
}

// graph loads the units and all that they pull in.
func (m *Manager) graph(names []string) map[string]*node {
	nodes := map[string]*node{}
	queue := slices.Clone(names)
	optional := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if nodes[name] != nil || isTarget(name) {
			continue
		}
		unit, err := Load(name, m.Dirs)
		if optional[name] && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrMasked)) {
			continue
		}
		n := &node{unit: unit, err: err, settled: make(chan struct{}), done: make(chan struct{})}
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
	connect(nodes)
	return nodes
}

func isTarget(name string) bool {
	return strings.HasSuffix(name, ".target") || strings.HasSuffix(name, ".slice")
}

// connect fills in the edges between the units that are in the graph.
func connect(nodes map[string]*node) {
	order := func(first, second *node) {
		if first != nil && second != nil && first != second {
			second.after = append(second.after, first)
			first.before = append(first.before, second)
		}
	}
	for _, n := range nodes {
		after, _, requires := n.unit.dependencies()
		for _, name := range after {
			order(nodes[name], n)
		}
		for _, name := range n.unit.words("Unit.Before") {
			order(n, nodes[name])
		}
		for _, name := range requires {
			if required := nodes[name]; required != nil {
				n.requires = append(n.requires, required)
			}
		}
	}
	breakCycles(nodes)
}

// breakCycles drops the edges that close a circle, as systemd does: a unit that waits for itself would never start.
func breakCycles(nodes map[string]*node) {
	const visiting, visited = 1, 2
	state := map[*node]int{}
	var visit func(n *node)
	visit = func(n *node) {
		state[n] = visiting
		n.after = slices.DeleteFunc(n.after, func(first *node) bool {
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
