// SPDX-License-Identifier: Apache-2.0

package units

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Group tracks the processes of each unit.
type Group interface {
	// Enter changes a command before its start so that its process and all child processes belong to the unit.
	Enter(unit string, cmd *exec.Cmd)
	// Signal sends a signal to the unit's processes; it is not an error if there are none.
	Signal(unit string, signal syscall.Signal) error
}

// Status is the status of a unit.
type Status struct {
	State State `json:"state"`
	// Message is the reason for the state; empty if there is no problem.
	Message string `json:"message,omitempty"`
	// Restarts is the number of restarts of the service.
	Restarts int `json:"restarts,omitempty"`
}

// Manager starts units in order, restarts them, and stops them.
type Manager struct {
	// Dirs contain the unit files; the first one with a unit takes precedence.
	Dirs []string
	// Hostname is the value of the specifier %H.
	Hostname string
	// Env is the base environment of every service.
	Env []string
	// LogDir receives the output of each unit in a file named after it.
	LogDir string
	// Group tracks the processes.
	Group Group
	// Changed is called with the status of all units whenever one changes; it may be nil.
	Changed func(map[string]Status)

	mu     sync.Mutex
	status map[string]Status
	// nodes are the started units, by name; ctx is the context of Run.
	nodes map[string]*node
	ctx   context.Context
	units sync.WaitGroup
	// generation is the number of calls of Reload; kept are the units for which a restart reuses the file as it was read
	// before.
	generation int
	kept       map[string]*Unit
}

// Run starts the named units and their dependencies. It returns when the context has ended and all units are stopped.
func (m *Manager) Run(ctx context.Context, names []string) error {
	if err := os.MkdirAll(m.LogDir, 0o755); err != nil {
		return fmt.Errorf("making the log folder of the units: %w", err)
	}
	m.mu.Lock()
	m.ctx = ctx
	m.launch(names)
	m.mu.Unlock()
	<-ctx.Done()
	m.units.Wait()
	return nil
}

// launch starts the units that are not running and their dependencies, and returns the nodes of the named ones.
func (m *Manager) launch(names []string) []*node {
	if m.nodes == nil {
		m.nodes = map[string]*node{}
	}
	fresh := m.graph(names, m.nodes)
	m.kept = nil
	for name, n := range fresh {
		n.generation = m.generation
		m.nodes[name] = n
	}
	for _, n := range fresh {
		m.units.Go(func() { m.drive(m.ctx, n) })
	}
	var named []*node
	for _, name := range names {
		named = append(named, m.nodes[name])
	}
	return named
}

// Status returns the status of every unit.
func (m *Manager) Status() map[string]Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copyStatus()
}

func (m *Manager) copyStatus() map[string]Status {
	status := make(map[string]Status, len(m.status))
	for name, s := range m.status {
		status[name] = s
	}
	return status
}

func (m *Manager) set(name string, change func(*Status)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status == nil {
		m.status = map[string]Status{}
	}
	s := m.status[name]
	change(&s)
	if isTarget(name) {
		return // Targets have no processes.
	}
	m.status[name] = s
	if m.Changed != nil {
		m.Changed(m.copyStatus())
	}
}

// drive runs the complete lifecycle of one unit.
func (m *Manager) drive(ctx context.Context, n *node) {
	defer close(n.done)
	settle := sync.OnceFunc(func() { close(n.settled); n.try(nil) })
	defer settle()
	ctx, cancel := n.until(ctx)
	defer cancel()
	name := n.unit.Name
	m.set(name, func(s *Status) { s.State = Waiting })
	for _, first := range n.after {
		select {
		case <-first.settled:
		case <-ctx.Done():
			return
		}
	}
	if isTarget(name) {
		m.hold(ctx, n, settle)
		return
	}
	log, err := m.openLog(name)
	if err != nil {
		m.fail(n, io.Discard, err)
		return
	}
	defer log.Close()
	service, err := m.prepare(ctx, n)
	if err != nil {
		m.fail(n, log, err)
		return
	}
	if reason := unmetCondition(n.unit); reason != "" {
		n.ok = true
		m.set(name, func(s *Status) { *s = Status{State: Inactive, Message: reason} })
		return
	}
	stopping := m.stopOrder(ctx, n)
	m.supervise(stopping, n, &runner{service: service, group: m.Group, log: log}, func() { n.ok = true; settle() })
}

// until returns a context that ends when the manager ends or the unit must stop.
func (n *node) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-n.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// hold runs the lifecycle of a target: it is reached when all units before it are up.
func (m *Manager) hold(ctx context.Context, n *node, settle func()) {
	if n.err != nil {
		n.try(n.err)
		return
	}
	n.ok = true
	settle()
	<-m.stopOrder(ctx, n).Done()
}

func (m *Manager) prepare(ctx context.Context, n *node) (*service, error) {
	if n.err != nil {
		return nil, n.err
	}
	if !strings.HasSuffix(n.unit.Name, ".service") {
		return nil, errors.New("units of this kind are not supported, only services are")
	}
	for _, required := range n.requires {
		select {
		case <-required.settled:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !required.ok {
			return nil, fmt.Errorf("%s, which it requires, did not start", required.unit.Name)
		}
	}
	return newService(n.unit, m.Hostname, m.Env)
}

// stopOrder returns a context that ends when the unit must stop. This is after ctx has ended and the units that are
// ordered after the unit are down.
func (m *Manager) stopOrder(ctx context.Context, n *node) context.Context {
	stopping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		<-ctx.Done()
		m.mu.Lock()
		last := slices.Clone(n.before)
		m.mu.Unlock()
		for _, second := range last {
			if m.ctx.Err() != nil { // Otherwise only this unit stops.
				<-second.done
			}
		}
		cancel()
	}()
	return stopping
}

// supervise runs a service repeatedly, as its Restart setting specifies. It calls settle when the service is up for the
// first time.
func (m *Manager) supervise(ctx context.Context, n *node, r *runner, settle func()) {
	for {
		m.set(r.name, func(s *Status) { s.State = Activating })
		err := r.once(ctx, func() {
			m.set(r.name, func(s *Status) { s.State, s.Message = Active, "" })
			settle()
		})
		if ctx.Err() != nil {
			m.set(r.name, func(s *Status) { s.State = Inactive })
			return
		}
		if err != nil {
			fmt.Fprintf(r.log, "%s %s: %v\n", time.Now().UTC().Format(time.RFC3339), r.name, err)
		}
		again := r.restarts(err)
		if again {
			m.set(r.name, func(s *Status) {
				s.Restarts++
				s.State, s.Message = Activating, "will be started again: "+describe(err)
			})
		} else {
			m.end(r.name, err)
		}
		if err != nil {
			n.try(err) // This comes after the status update: callers that waited for the attempt read the status next.
		}
		if !again {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.restartDelay):
		}
	}
}

func describe(err error) string {
	if err == nil {
		return "it ended"
	}
	return err.Error()
}

func (m *Manager) end(name string, err error) {
	m.set(name, func(s *Status) {
		s.State, s.Message = Inactive, ""
		if err != nil {
			s.State, s.Message = Failed, err.Error()
		}
	})
}

func (m *Manager) fail(n *node, log io.Writer, err error) {
	fmt.Fprintf(log, "%s %s: %v\n", time.Now().UTC().Format(time.RFC3339), n.unit.Name, err)
	m.end(n.unit.Name, err)
	n.try(err)
}

func (m *Manager) openLog(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(m.LogDir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// unmetCondition returns the condition of the unit that is not met; empty if all are met.
func unmetCondition(u *Unit) string {
	for _, condition := range u.list("Unit.ConditionPathExists") {
		path, negated := strings.CutPrefix(condition, "!")
		_, err := os.Stat(path)
		if (err == nil) == negated {
			return "ConditionPathExists=" + condition + " does not hold"
		}
	}
	return ""
}
