// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/network"
)

// stopTimeout is how long the units of a machine may take to stop before PID 1 is killed.
const stopTimeout = 20 * time.Second

// killTimeout is how long the kernel may take to end all processes of a machine, also on a busy host.
const killTimeout = 2 * time.Minute

// pollInterval is how often Stop and Wait check whether PID 1 has ended; it may be another process's child.
const pollInterval = 20 * time.Millisecond

// Machine is a machine that was started at some time; it may or may not be running.
type Machine struct {
	state state
}

// Config returns the configuration of the machine, with defaults.
func (m *Machine) Config() Config { return m.state.Config }

// PID returns the host's process ID of the machine's PID 1; zero if it never started.
func (m *Machine) PID() int { return m.state.PID }

// Path returns the path on the host of a file in the machine.
func (m *Machine) Path(inMachine string) string { return m.state.Config.Path(inMachine) }

// Running reports whether the machine was started and its PID 1 is alive.
func (m *Machine) Running() bool { return m.state.Ready && m.state.alive() }

// Lookup returns the machine whose folder is dir, even if another process started it. The error wraps fs.ErrNotExist if
// no machine was ever started there.
func Lookup(dir string) (*Machine, error) {
	state, err := readState(dir)
	if err != nil {
		return nil, err
	}
	return &Machine{state: *state}, nil
}

// Processes lists the host's process IDs of all processes in the machine, including containers.
func (m *Machine) Processes() ([]int, error) { return cgroup.Processes(m.state.Config.cgroup()) }

// Wait returns when the machine's PID 1 has ended, or with the context's error.
func (m *Machine) Wait(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for m.state.alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for machine %s to stop: %w", m.state.Config.Name, context.Cause(ctx))
		case <-ticker.C:
		}
	}
	return nil
}

// Stop shuts the machine down in order. It kills what is left after 20 seconds or when the context ends. Then it
// removes the network namespace and cgroups; the folder stays. It accepts a machine that is not running, so Stop also
// cleans up after a crash.
func (m *Machine) Stop(ctx context.Context) error {
	graceful, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if m.Running() {
		m.signal(unix.SIGTERM)
		_ = m.Wait(graceful)
	}
	return m.Kill(ctx)
}

// Kill ends the machine immediately, as if its power were cut, and removes its network namespace and cgroups. It does
// so even if the context has ended: it is quick, and partial cleanup has no use.
func (m *Machine) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
	defer cancel()
	if m.state.alive() {
		m.signal(unix.SIGKILL)
		if err := m.Wait(ctx); err != nil {
			return err
		}
	}
	config := m.state.Config
	return errors.Join(cgroup.Remove(ctx, config.cgroup()), network.RemoveNamespace(config.Name))
}

// Remove kills the machine and deletes its folder.
func (m *Machine) Remove(ctx context.Context) error {
	if err := m.Kill(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(m.state.Config.Dir); err != nil {
		return fmt.Errorf("removing the folder of machine %s: %w", m.state.Config.Name, err)
	}
	return nil
}

// signal ignores the error that the process is gone: callers check Running.
func (m *Machine) signal(signal unix.Signal) { _ = unix.Kill(m.state.PID, signal) }

// Command returns a command that runs in all of the machine's namespaces, with its environment. argv[0] is looked up in
// the machine's PATH. The machine must be running when the command is started.
func (m *Machine) Command(ctx context.Context, argv ...string) *exec.Cmd {
	args := []string{"--target", strconv.Itoa(m.state.PID), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
		"--root", "--wd", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, argv...)...)
	cmd.Env = m.state.Config.Env
	return cmd
}

// Exec runs a command in the machine and returns its standard output. The error contains its standard error.
func (m *Machine) Exec(ctx context.Context, argv ...string) (string, error) {
	out, err := m.Command(ctx, argv...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return string(out), fmt.Errorf("running %q in machine %s: %w", argv, m.state.Config.Name, err)
	}
	return string(out), nil
}
