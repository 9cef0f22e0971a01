// SPDX-License-Identifier: Apache-2.0

// Package supervise keeps a program running after the command that started it has ended, and restarts it when it dies.
// The supervisor is this program itself: main must call Run if Requested.
package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/machine/network"
)

const (
	// role is the name of this program as a supervisor.
	role = "devcluster-supervisor"
	// lockFD is the file descriptor of the supervisor's inherited lock.
	lockFD = 3
	// grace is how long a program may take to end after SIGTERM.
	grace = 10 * time.Second
	// minPause and maxPause limit the pause before an ended program is restarted.
	minPause, maxPause = 500 * time.Millisecond, 10 * time.Second
	// healthy is how long a program must run to reset its pause to minPause.
	healthy = 30 * time.Second
	// pollInterval is how often Stop checks whether the supervisor has ended.
	pollInterval = 20 * time.Millisecond
)

// Process is a supervised program.
type Process struct {
	// Name is the base name of its files in Dir.
	Name string `json:"name"`
	// Dir contains the log NAME.log, and NAME.pid, which is locked while the supervisor runs.
	Dir string `json:"dir"`
	// Namespace is the name of its network namespace; empty means the caller's.
	Namespace string `json:"namespace,omitempty"`
	// Command is the program and its arguments.
	Command []string `json:"command"`
}

// Log returns the file with the program's output.
func (p Process) Log() string { return filepath.Join(p.Dir, p.Name+".log") }

func (p Process) lockFile() string { return filepath.Join(p.Dir, p.Name+".pid") }

// Start starts the supervisor, unless it already runs.
func (p Process) Start() error {
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	lock, err := p.lock(unix.LOCK_EX)
	if errors.Is(err, errRunning) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	defer lock.Close()
	if err := p.spawn(lock); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	return nil
}

// errRunning reports that the supervisor holds its lock.
var errRunning = errors.New("it is running")

// lock acquires the process's lock. The lock belongs to the open file, which the supervisor inherits. It always ends
// with the supervisor, so there is no stale state.
func (p Process) lock(how int) (*os.File, error) {
	file, err := os.OpenFile(p.lockFile(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errRunning
		}
		return nil, err
	}
	return file, nil
}

func (p Process) spawn(lock *os.File) error {
	spec, err := json.Marshal(p)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	supervisor := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{role, string(spec)}, Env: os.Environ(), Dir: "/",
		Stdout: log, Stderr: log, ExtraFiles: []*os.File{lock},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	start := supervisor.Start
	if p.Namespace != "" {
		start = func() error { return network.Do(p.Namespace, supervisor.Start) }
	}
	if err := start(); err != nil {
		return err
	}
	if _, err := lock.WriteAt([]byte(fmt.Sprintf("%-10d\n", supervisor.Process.Pid)), 0); err != nil {
		return errors.Join(err, supervisor.Process.Kill())
	}
	return supervisor.Process.Release()
}

// Known reports whether the program was ever started.
func (p Process) Known() bool {
	_, err := os.Stat(p.lockFile())
	return err == nil
}

// Running reports whether the supervisor runs.
func (p Process) Running() bool {
	lock, err := p.lock(unix.LOCK_SH)
	if err != nil {
		return errors.Is(err, errRunning)
	}
	lock.Close()
	return false
}

// PID returns the supervisor's process ID from its file; zero if there is none.
func (p Process) PID() int {
	data, err := os.ReadFile(p.lockFile())
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data))) // An incomplete file means that there is no ID yet.
	return pid
}

// Stop ends the program and its supervisor, if they run.
func (p Process) Stop(ctx context.Context) error {
	if !p.Known() {
		return nil
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if !p.Running() {
			return nil
		}
		if pid := p.PID(); pid > 0 {
			_ = unix.Kill(pid, signal)
		}
		if p.waitStopped(ctx, grace+time.Second) {
			return nil
		}
	}
	return fmt.Errorf("stopping %s: its supervisor, process %d, does not end", p.Name, p.PID())
}

func (p Process) waitStopped(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for p.Running() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// Requested reports whether this program was started as a supervisor.
func Requested() bool { return os.Args[0] == role }

// Run is the supervisor: it runs the program repeatedly until the context ends.
func Run(ctx context.Context) error {
	unix.CloseOnExec(lockFD)
	// A program must not outlive its supervisor; the kernel ties it to the thread that started it.
	runtime.LockOSThread()
	var p Process
	if err := json.Unmarshal([]byte(os.Args[1]), &p); err != nil {
		return fmt.Errorf("reading what to supervise: %w", err)
	}
	p.loop(ctx, os.Stdout)
	return nil
}

func (p Process) loop(ctx context.Context, log io.Writer) {
	pause := minPause
	for {
		started := time.Now()
		err := p.run(ctx, log)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > healthy {
			pause = minPause
		}
		fmt.Fprintf(log, "%s %s ended (%v); it is started again in %s\n", time.Now().UTC().Format(time.RFC3339), p.Name, err, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

func (p Process) run(ctx context.Context, log io.Writer) error {
	cmd := exec.CommandContext(ctx, p.Command[0], p.Command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd.Run()
}
