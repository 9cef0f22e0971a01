package units

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Group keeps track of the processes of each unit.
type Group interface {
	// Enter changes a command that is about to be started so that its process, and all that it starts, belong to the unit.
	Enter(unit string, cmd *exec.Cmd)
	// Signal sends a signal to the unit's processes; that there are none is no error.
	Signal(unit string, signal syscall.Signal) error
}

// Status is how a unit is doing.
type Status struct {
	State State `json:"state"`
	// Message says why, in words; empty when all is well.
	Message string `json:"message,omitempty"`
	// Restarts counts how often the service was started again.
	Restarts int `json:"restarts,omitempty"`
}

// Manager starts units in their order, keeps them up and stops them.
type Manager struct {
	// Dirs hold the unit files; the first that has a unit wins.
	Dirs []string
	// Hostname is what the specifier %H stands for.
	Hostname string
	// Env is what every service's environment starts from.
	Env []string
	// LogDir receives the output of each unit in a file named after it.
	LogDir string
	// Group keeps track of processes.
	Group Group
	// Changed is told the status of all units whenever one changes. Nil: nobody is.
	Changed func(map[string]Status)

	mu     sync.Mutex
	status map[string]Status
}

// Run starts the named units and those that they pull in, and returns when the context has ended and all are stopped.
func (m *Manager) Run(ctx context.Context, names []string) error {
	if err := os.MkdirAll(m.LogDir, 0o755); err != nil {
		return fmt.Errorf("making the log folder of the units: %w", err)
	}
	nodes := m.graph(names)
	var wait sync.WaitGroup
	for _, n := range nodes {
		wait.Go(func() { m.drive(ctx, n) })
	}
	wait.Wait()
	<-ctx.Done()
	return nil
}

// Status returns how every unit is doing.
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
	m.status[name] = s
	if m.Changed != nil {
		m.Changed(m.copyStatus())
	}
}

// drive takes one unit through its life.
func (m *Manager) drive(ctx context.Context, n *node) {
	defer close(n.done)
	settle := sync.OnceFunc(func() { close(n.settled) })
	defer settle()
	name := n.unit.Name
	m.set(name, func(s *Status) { s.State = Waiting })
	for _, first := range n.after {
		select {
		case <-first.settled:
		case <-ctx.Done():
			return
		}
	}
	log, err := m.openLog(name)
	if err != nil {
		m.fail(name, io.Discard, err)
		return
	}
	defer log.Close()
	service, err := m.prepare(ctx, n)
	if err != nil {
		m.fail(name, log, err)
		return
	}
	if reason := unmetCondition(n.unit); reason != "" {
		n.ok = true
		m.set(name, func(s *Status) { *s = Status{State: Inactive, Message: reason} })
		return
	}
	stopping := m.stopOrder(ctx, n)
	m.supervise(stopping, &runner{service: service, group: m.Group, log: log}, func() { n.ok = true; settle() })
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

// stopOrder is a context that ends when the unit is to be stopped: when ctx has ended and the units that are ordered
// after it are down.
func (m *Manager) stopOrder(ctx context.Context, n *node) context.Context {
	stopping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		<-ctx.Done()
		for _, second := range n.before {
			<-second.done
		}
		cancel()
	}()
	return stopping
}

// supervise runs a service again and again, as its Restart says. settle is called when it is up for the first time.
func (m *Manager) supervise(ctx context.Context, r *runner, settle func()) {
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
		if !r.restarts(err) {
			m.end(r.name, err)
			return
		}
		m.set(r.name, func(s *Status) {
			s.Restarts++
			s.State, s.Message = Activating, "will be started again: "+describe(err)
		})
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

func (m *Manager) fail(name string, log io.Writer, err error) {
	fmt.Fprintf(log, "%s %s: %v\n", time.Now().UTC().Format(time.RFC3339), name, err)
	m.end(name, err)
}

func (m *Manager) openLog(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(m.LogDir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// unmetCondition says which condition of the unit does not hold; empty if all do.
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
