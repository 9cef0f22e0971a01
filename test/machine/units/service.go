// SPDX-License-Identifier: Apache-2.0

package units

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// State is the state of a unit.
type State string

const (
	// Waiting means that it waits for the units that it is ordered after.
	Waiting State = "waiting"
	// Activating means that its commands run and it is not yet up.
	Activating State = "activating"
	// Active means that it is up. For a oneshot with RemainAfterExit, it means that it has succeeded.
	Active State = "active"
	// Inactive means that it has ended successfully, or that a condition prevented its start.
	Inactive State = "inactive"
	// Failed means that it will not be started again.
	Failed State = "failed"
)

const (
	defaultStartTimeout = 90 * time.Second
	defaultStopTimeout  = 10 * time.Second
	defaultRestartDelay = 100 * time.Millisecond
)

// service is a parsed unit file.
type service struct {
	name                                    string
	kind                                    string
	pre, start, post, stop                  []command
	env                                     []string
	dir, restart, killMode                  string
	remain                                  bool
	restartDelay, startTimeout, stopTimeout time.Duration
}

func newService(u *Unit, hostname string, baseEnv []string) (*service, error) {
	s := &service{
		name: u.Name, kind: u.last("Service.Type"), restart: u.last("Service.Restart"), killMode: u.last("Service.KillMode"),
		dir: specifiers(u.Name, hostname, u.last("Service.WorkingDirectory")), remain: u.bool("Service.RemainAfterExit"),
	}
	switch s.kind {
	case "", "exec", "idle":
		s.kind = "simple"
	case "simple", "notify", "oneshot":
	default:
		return nil, fmt.Errorf("Type=%s is not supported; use simple, exec, idle, notify or oneshot", s.kind)
	}
	env, err := environment(u, hostname, baseEnv)
	if err != nil {
		return nil, err
	}
	for key, value := range env {
		s.env = append(s.env, key+"="+value)
	}
	for key, commands := range map[string]*[]command{
		"ExecStartPre": &s.pre, "ExecStart": &s.start, "ExecStartPost": &s.post, "ExecStop": &s.stop,
	} {
		for _, line := range u.list("Service." + key) {
			c, err := parseCommand(specifiers(u.Name, hostname, line), env)
			if err != nil {
				return nil, fmt.Errorf("%s=%w", key, err)
			}
			*commands = append(*commands, c)
		}
	}
	if len(s.start) == 0 || (len(s.start) > 1 && s.kind != "oneshot") {
		return nil, fmt.Errorf("Type=%s with %d ExecStart commands", s.kind, len(s.start))
	}
	return s, s.durations(u)
}

func (s *service) durations(u *Unit) error {
	start := defaultStartTimeout
	if s.kind == "oneshot" {
		start = 0
	}
	var errs [3]error
	s.restartDelay, errs[0] = u.duration("Service.RestartSec", defaultRestartDelay)
	s.startTimeout, errs[1] = u.duration("Service.TimeoutStartSec", start)
	s.stopTimeout, errs[2] = u.duration("Service.TimeoutStopSec", defaultStopTimeout)
	return errors.Join(errs[:]...)
}

// restarts reports whether the service is restarted after it ended with err.
func (s *service) restarts(err error) bool {
	switch s.restart {
	case "always":
		return s.kind != "oneshot" || err != nil
	case "on-success":
		return err == nil && s.kind != "oneshot"
	case "on-failure", "on-abnormal", "on-abort", "on-watchdog":
		return err != nil
	}
	return false
}

// runner runs one service's processes.
type runner struct {
	*service
	group Group
	log   io.Writer
}

// once runs the service from start to end. It calls active when the service is up. When the context ends, it stops the
// service and returns nil.
func (r *runner) once(ctx context.Context, active func()) error {
	err := r.attempt(ctx, active)
	if kill := r.cleanUp(); err == nil {
		err = kill
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // Whoever stops a service kills it, too.
	}
	return err
}

func (r *runner) attempt(ctx context.Context, active func()) error {
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.startTimeout > 0 {
		timer := time.AfterFunc(r.startTimeout, func() {
			cancel(fmt.Errorf("did not start within %s", r.startTimeout))
		})
		defer timer.Stop()
		up := active
		active = func() { timer.Stop(); up() }
	}
	if err := r.sequence(starting, "ExecStartPre", r.pre); err != nil {
		return err
	}
	if r.kind == "oneshot" {
		return r.oneshot(ctx, starting, active)
	}
	return r.daemon(ctx, starting, active)
}

func (r *runner) oneshot(ctx, starting context.Context, active func()) error {
	if err := r.sequence(starting, "ExecStart", r.start); err != nil {
		return err
	}
	if err := r.sequence(starting, "ExecStartPost", r.post); err != nil {
		return err
	}
	active()
	if r.remain {
		<-ctx.Done()
		r.runStop()
	}
	return nil
}

// daemon runs the main process until it ends.
func (r *runner) daemon(ctx, starting context.Context, active func()) error {
	ready, closeReady, socket, err := r.readiness()
	if err != nil {
		return err
	}
	defer closeReady()
	cmd := r.command(r.start[0])
	if socket != "" {
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("ExecStart: %w", err)
	}
	process := await(cmd)

	select {
	case <-ready:
	case <-process.ended:
		return r.exit(process.err)
	case <-starting.Done():
		return errors.Join(context.Cause(starting), r.terminate(process))
	}
	if err := r.sequence(starting, "ExecStartPost", r.post); err != nil {
		return errors.Join(err, r.terminate(process))
	}
	active()
	select {
	case <-process.ended:
		return r.exit(process.err)
	case <-ctx.Done():
		r.runStop()
		return r.terminate(process)
	}
}

// process is a started process.
type process struct {
	*os.Process
	// ended is closed when the process has ended; err is then its result.
	ended chan struct{}
	err   error
}

func await(cmd *exec.Cmd) *process {
	p := &process{Process: cmd.Process, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	return p
}

// exit returns the result of the service for the result of the main process.
func (r *runner) exit(err error) error {
	if err == nil || r.start[0].ignoreFailure {
		return nil
	}
	return fmt.Errorf("ExecStart: %w", err)
}

// sequence runs commands one after the other.
func (r *runner) sequence(ctx context.Context, what string, commands []command) error {
	for _, c := range commands {
		cmd := r.command(c)
		if err := cmd.Start(); err != nil && !c.ignoreFailure {
			return fmt.Errorf("%s: %w", what, err)
		} else if err != nil {
			continue
		}
		process := await(cmd)
		select {
		case <-process.ended:
			if process.err != nil && !c.ignoreFailure {
				return fmt.Errorf("%s: %s: %w", what, c.argv[0], process.err)
			}
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), r.terminate(process))
		}
	}
	return nil
}

// runStop runs the ExecStop commands. It only logs their results, since the processes are ended anyway.
func (r *runner) runStop() {
	ctx, cancel := context.WithTimeout(context.Background(), r.stopTimeout)
	defer cancel()
	if err := r.sequence(ctx, "ExecStop", r.stop); err != nil {
		fmt.Fprintf(r.log, "%s: %v\n", r.name, err)
	}
}

func (r *runner) command(c command) *exec.Cmd {
	cmd := &exec.Cmd{
		Path: c.argv[0], Args: c.argv, Env: r.env, Dir: r.dir, Stdout: r.log, Stderr: r.log,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if !strings.Contains(cmd.Path, "/") {
		cmd.Path, cmd.Err = lookPath(cmd.Path, r.env)
	}
	r.group.Enter(r.name, cmd)
	return cmd
}

// lookPath finds a program in the unit's PATH, which may differ from this process's.
func lookPath(program string, env []string) (string, error) {
	for _, pair := range env {
		list, found := strings.CutPrefix(pair, "PATH=")
		if !found {
			continue
		}
		for dir := range strings.SplitSeq(list, ":") {
			path := dir + "/" + program
			if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return program, fmt.Errorf("%s: %w", program, exec.ErrNotFound)
}

// terminate ends a process and, unless KillMode specifies otherwise, all processes in the unit's group. It sends
// SIGTERM first, and SIGKILL after the stop timeout.
func (r *runner) terminate(p *process) error {
	_ = p.Signal(syscall.SIGTERM) // The process may already have ended.
	if r.killMode == "" || r.killMode == "control-group" {
		_ = r.group.Signal(r.name, syscall.SIGTERM)
	}
	timer := time.NewTimer(r.stopTimeout)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
	}
	_ = p.Kill()
	<-p.ended
	return fmt.Errorf("did not stop within %s and was killed", r.stopTimeout)
}

// cleanUp kills the processes that the service has left.
func (r *runner) cleanUp() error {
	if r.killMode == "process" || r.killMode == "none" {
		return nil
	}
	return r.group.Signal(r.name, syscall.SIGKILL)
}
