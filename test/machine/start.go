// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/network"
)

// Start starts the machine. It returns when its root file system, network and devices are set up and its PID 1 runs,
// before it has booted. If the machine in config.Dir already runs, Start returns it. Start needs root.
func Start(ctx context.Context, config Config) (*Machine, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("starting a machine: %w", err)
	}
	config = config.withDefaults()
	earlier, err := Lookup(config.Dir)
	if err == nil && earlier.Running() {
		return earlier, nil
	}
	if err == nil {
		err = earlier.Kill(ctx)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	m := &Machine{state: state{Config: config}}
	if err := m.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting machine %s: %w", config.Name, err), m.Kill(ctx))
	}
	return m, nil
}

func (m *Machine) start(ctx context.Context) error {
	config := m.state.Config
	if err := os.MkdirAll(config.Root(), 0o755); err != nil {
		return err
	}
	if err := m.state.write(); err != nil {
		return err
	}
	// A machine of this name may have existed in another folder.
	if err := m.Kill(ctx); err != nil {
		return fmt.Errorf("clearing up after an earlier run: %w", err)
	}
	if err := populate(config); err != nil {
		return fmt.Errorf("preparing its root file system: %w", err)
	}
	if err := network.EnsureNamespace(config.Name); err != nil {
		return err
	}
	if err := network.Ensure(config.Name, config.Network); err != nil {
		return err
	}
	if err := cgroup.Create(config.cgroup()); err != nil {
		return err
	}
	if err := m.spawn(); err != nil {
		return err
	}
	m.state.Ready = true
	return m.state.write()
}

// spawn starts PID 1 in new namespaces, moves it into its cgroup, and lets it continue. Until then, PID 1 waits on a
// pipe, and dies if this process dies.
func (m *Machine) spawn() error {
	console, err := os.OpenFile(m.state.Config.Console(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	goAhead, goAheadWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer goAhead.Close()
	defer goAheadWriter.Close()
	result, resultWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer result.Close()

	cmd := initCommand(m.state.Config, console)
	cmd.ExtraFiles = []*os.File{setupGoAhead - 3: goAhead, setupResult - 3: resultWriter}
	err = network.Do(m.state.Config.Name, cmd.Start)
	resultWriter.Close()
	if err != nil {
		return fmt.Errorf("starting its PID 1: %w", err)
	}
	go func() { _ = cmd.Wait() }() // Reap the process; its exit is on the console.
	if err := m.admit(cmd.Process.Pid); err != nil {
		return err
	}
	goAhead.Close()
	if _, err := goAheadWriter.WriteString("go"); err != nil {
		return fmt.Errorf("starting its PID 1: %w", err)
	}
	goAheadWriter.Close()
	// The pipe closes without data if PID 1 has set itself up.
	failure, err := io.ReadAll(result)
	if err == nil && len(failure) > 0 {
		err = errors.New(strings.TrimSpace(string(failure)))
	}
	return err
}

func initCommand(config Config, console *os.File) *exec.Cmd {
	executable := config.Executable
	if executable == "" {
		executable = "/proc/self/exe"
	}
	return &exec.Cmd{
		Path: executable, Args: []string{roleSetup, config.Dir}, Env: config.Env, Dir: "/", Stdout: console, Stderr: console,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
			Setsid:     true,
		},
	}
}

// admit records the new PID 1 and moves it into the machine's cgroup.
func (m *Machine) admit(pid int) error {
	started, _, err := processStart(pid)
	if err != nil {
		return fmt.Errorf("its PID 1 died at once: %w", err)
	}
	m.state.PID, m.state.StartTime = pid, started
	if err := m.state.write(); err != nil {
		return err
	}
	return cgroup.Join(m.state.Config.cgroup(), pid)
}
