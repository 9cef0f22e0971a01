// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/machine/cgroup"
	"github.com/openshift/hypershift/test/machine/control"
	"github.com/openshift/hypershift/test/machine/units"
)

const (
	managerCgroup = "init.scope"
	unitStatus    = "/run/machine/units.json"
)

var (
	unitDirs       = []string{"/etc/systemd/system", "/run/systemd/system"}
	systemUnitDirs = []string{
		"/etc/systemd/system", "/run/systemd/generator.early", "/run/systemd/system", "/run/systemd/generator",
		"/usr/lib/systemd/system", "/run/systemd/generator.late",
	}
	presetDir  = "/etc/systemd/system-preset"
	unitLogDir = "/var/log/units"
)

// runPID1 reaps all orphaned processes until the manager ends, and the machine with it. The manager is a separate
// process, so that it can wait for its own children.
func runPID1(map[string]Boot) int {
	closeOnExec()
	var manager atomic.Int64
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	go func() {
		for range signals {
			_ = unix.Kill(int(manager.Load()), unix.SIGTERM)
		}
	}()
	fresh, err := takeSnapshot()
	for err == nil {
		var pid, code int
		pid, err = syscall.ForkExec("/proc/self/exe", []string{roleManager}, &syscall.ProcAttr{
			Env: os.Environ(), Files: []uintptr{0, 1, 2},
		})
		if err != nil {
			break
		}
		manager.Store(int64(pid))
		code = reap(pid)
		if code != exitReboot {
			return code
		}
		err = fresh.restore(context.Background())
	}
	fmt.Fprintln(os.Stderr, "starting the manager:", err)
	return 1
}

// reap waits for all child processes until the manager ends, and returns the manager's exit status.
func reap(manager int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if pid == manager {
			return status.ExitStatus()
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			fmt.Fprintln(os.Stderr, "waiting for the manager:", err)
			return 1
		}
	}
}

// closeOnExec keeps other processes of the machine from inheriting the file descriptors that keep its disks attached.
func closeOnExec() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// runManager boots the machine and runs its units until it receives the signal to stop.
func runManager(boots map[string]Boot) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	err := manage(ctx, boots)
	if errors.Is(err, errPower(control.Reboot)) {
		return exitReboot
	}
	if err != nil && !errors.Is(err, errPower(control.PowerOff)) && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "machine:", err)
		return 1
	}
	return 0
}

func manage(ctx context.Context, boots map[string]Boot) error {
	config, err := readInsideConfig()
	if err != nil {
		return fmt.Errorf("reading its configuration: %w", err)
	}
	if err := cgroup.Evacuate(managerCgroup, 1, os.Getpid()); err != nil {
		return err
	}
	if err := prepareSystem(ctx, config); err != nil {
		return err
	}
	if config.Boot != "" {
		boot, ok := boots[config.Boot]
		if !ok {
			return fmt.Errorf("its program has no boot %q", config.Boot)
		}
		if err := boot(ctx, &System{Config: config}); err != nil {
			return fmt.Errorf("boot %s: %w", config.Boot, err)
		}
	}
	if err := applyFiles(); err != nil {
		return err
	}
	return runUnits(ctx, config)
}

// applyFiles applies settings of the root file system: the host name, and the network's kernel settings.
func applyFiles() error {
	name, err := os.ReadFile("/etc/hostname")
	if err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(strings.TrimSpace(string(name)))); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	files, err := filepath.Glob("/etc/sysctl.d/*.conf")
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := applySysctls("/proc/sys", string(data)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
		}
	}
	return nil
}

// applySysctls continues after a setting that the kernel rejects, as systemd does. It returns all rejected settings.
// Most of them are global settings of the host, which a machine cannot change.
func applySysctls(dir, content string) error {
	var refused []error
	for line := range strings.Lines(content) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		key = strings.TrimSpace(strings.TrimPrefix(key, "-"))
		if !found || strings.HasPrefix(key, "#") || strings.HasPrefix(key, ";") {
			continue
		}
		path := filepath.Join(dir, strings.ReplaceAll(key, ".", "/"))
		if err := writeExisting(path, strings.TrimSpace(value)); err != nil {
			refused = append(refused, fmt.Errorf("%s stays as it is: %w", key, err))
		}
	}
	return errors.Join(refused...)
}

func writeExisting(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

func runUnits(ctx context.Context, config Config) error {
	dirs := unitDirs
	if config.System != "" {
		dirs = systemUnitDirs
	}
	names, err := units.Enabled(dirs, presetDir)
	if err != nil {
		return err
	}
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	manager := &units.Manager{
		Dirs: dirs, Hostname: hostname, Env: config.Env, LogDir: unitLogDir, Group: groups{}, Changed: writeUnitStatus,
	}
	ctx, power := context.WithCancelCause(ctx)
	server := &control.Server{Manager: manager, Power: func(verb control.Verb) { power(errPower(verb)) }}
	if err := server.Serve(ctx, control.Socket); err != nil {
		return err
	}
	if err := manager.Run(ctx, append(names, "multi-user.target")); err != nil {
		return err
	}
	if verb := errPower(""); errors.As(context.Cause(ctx), &verb) {
		return verb
	}
	return nil
}

// errPower reports that the manager ends because a program of the machine requested it.
type errPower control.Verb

func (e errPower) Error() string { return "the machine was asked to " + string(e) }

// writeUnitStatus writes the status to the file that Units reads.
func writeUnitStatus(status map[string]units.Status) {
	data, err := json.Marshal(status)
	if err == nil {
		err = os.WriteFile(unitStatus+".new", data, 0o644)
	}
	if err == nil {
		err = os.Rename(unitStatus+".new", unitStatus)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "writing the status of the units:", err)
	}
}

// Units returns the status of the machine's units; empty before they are started.
func (m *Machine) Units() (map[string]units.Status, error) {
	status := map[string]units.Status{}
	data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(m.state.PID), "root", unitStatus))
	if errors.Is(err, fs.ErrNotExist) {
		return status, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &status)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the units of machine %s: %w", m.state.Config.Name, err)
	}
	return status, nil
}

// groups uses a separate cgroup for the processes of each unit.
type groups struct{}

func unitCgroup(unit string) string { return filepath.Join("system.slice", unit) }

// Enter starts the command through a launcher, which joins the cgroup and executes the command.
func (groups) Enter(unit string, cmd *exec.Cmd) {
	cmd.Args = append([]string{roleLaunch, unit, cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
}

func (groups) Signal(unit string, signal syscall.Signal) error {
	return cgroup.Signal(unitCgroup(unit), signal)
}

// runLaunch joins the cgroup of unit os.Args[1] and executes os.Args[2] with the remaining arguments.
func runLaunch(map[string]Boot) int {
	name := unitCgroup(os.Args[1])
	err := cgroup.Create(name)
	if err == nil {
		err = cgroup.Join(name, os.Getpid())
	}
	if err == nil {
		err = unix.Exec(os.Args[2], os.Args[3:], os.Environ())
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[2], err)
	return 126
}
