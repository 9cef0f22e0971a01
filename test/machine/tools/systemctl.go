// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/openshift/hypershift/test/machine/control"
	"github.com/openshift/hypershift/test/machine/units"
)

// Exit statuses of systemctl.
const (
	exitNotActive = 3
	exitNotFound  = 4
)

// options are the supported options of systemctl; others only concern its output and are ignored.
type options struct {
	now, noBlock, quiet, value bool
	signal                     syscall.Signal
	properties                 []string
}

type systemctlCall struct {
	System
	options
	units []string
}

var verbs = map[string]func(*systemctlCall) int{
	"start":             func(c *systemctlCall) int { return c.ask(control.Start) },
	"stop":              func(c *systemctlCall) int { return c.ask(control.Stop) },
	"restart":           func(c *systemctlCall) int { return c.ask(control.Restart) },
	"reload-or-restart": func(c *systemctlCall) int { return c.ask(control.Restart) },
	"try-restart":       (*systemctlCall).tryRestart,
	"kill":              func(c *systemctlCall) int { return c.ask(control.Kill) },
	"daemon-reload":     func(c *systemctlCall) int { return c.ask(control.Reload) },
	"daemon-reexec":     func(c *systemctlCall) int { return c.ask(control.Reload) },
	"reboot":            func(c *systemctlCall) int { return c.ask(control.Reboot) },
	"poweroff":          func(c *systemctlCall) int { return c.ask(control.PowerOff) },
	"enable":            (*systemctlCall).enable,
	"disable":           (*systemctlCall).disable,
	"mask":              (*systemctlCall).mask,
	"unmask":            (*systemctlCall).unmask,
	"is-active":         (*systemctlCall).isActive,
	"is-failed":         (*systemctlCall).isFailed,
	"is-enabled":        (*systemctlCall).isEnabled,
	"is-system-running": func(c *systemctlCall) int { c.print("running"); return 0 },
	"show":              (*systemctlCall).show,
	"status":            (*systemctlCall).status,
	"reset-failed":      func(*systemctlCall) int { return 0 },
}

func systemctl(s System, args []string) int {
	call := &systemctlCall{System: s, options: options{signal: syscall.SIGTERM}}
	words, err := call.parse(args)
	if err != nil {
		return s.fail("systemctl: %v", err)
	}
	if len(words) == 0 {
		return s.fail("systemctl: what is to be done? This machine knows %s", strings.Join(known(), ", "))
	}
	verb := verbs[words[0]]
	if verb == nil {
		return s.fail("Unknown command verb '%s'. This machine knows %s.", words[0], strings.Join(known(), ", "))
	}
	for _, name := range words[1:] {
		call.units = append(call.units, units.FullName(name))
	}
	return verb(call)
}

func known() []string {
	var names []string
	for name := range verbs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// withValue lists the options whose value may be the next word.
var withValue = map[string]string{"-s": "--signal", "--signal": "--signal", "-p": "--property", "--property": "--property"}

// parse sets the options and returns the other words.
func (o *options) parse(args []string) ([]string, error) {
	var words []string
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") {
			words = append(words, args[i])
			continue
		}
		if long := withValue[name]; long != "" {
			if !given && i+1 < len(args) {
				i++
				value = args[i]
			}
			name = long
		}
		if err := o.set(name, value); err != nil {
			return nil, err
		}
	}
	return words, nil
}

func (o *options) set(name, value string) error {
	switch name {
	case "--now":
		o.now = true
	case "--no-block":
		o.noBlock = true
	case "-q", "--quiet":
		o.quiet = true
	case "--value":
		o.value = true
	case "--property":
		o.properties = append(o.properties, strings.Split(value, ",")...)
	case "--signal":
		o.signal = signals[strings.TrimPrefix(strings.ToUpper(value), "SIG")]
		if o.signal == 0 {
			return fmt.Errorf("unknown signal %q", value)
		}
	}
	return nil
}

var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
}

func (c *systemctlCall) print(format string, args ...any) {
	if !c.quiet {
		fmt.Fprintf(c.Out, format+"\n", args...)
	}
}

func (c *systemctlCall) ask(verb control.Verb) int {
	_, err := control.Ask(c.Socket, control.Request{Verb: verb, Units: c.units, NoBlock: c.noBlock, Signal: c.signal})
	if err != nil {
		return c.fail("systemctl %s: %v", verb, err)
	}
	return 0
}

// statuses returns the status of all units.
func (c *systemctlCall) statuses() (map[string]units.Status, error) {
	answer, err := control.Ask(c.Socket, control.Request{Verb: control.Status})
	return answer.Units, err
}

// tryRestart restarts only the units that run.
func (c *systemctlCall) tryRestart() int {
	statuses, err := c.statuses()
	if err != nil {
		return c.fail("systemctl: %v", err)
	}
	c.units = slices.DeleteFunc(c.units, func(name string) bool { return activeState(statuses[name]) != "active" })
	return c.ask(control.Restart)
}

// activeState returns systemd's name for the state of a unit.
func activeState(s units.Status) string {
	switch s.State {
	case units.Active, units.Failed, units.Activating:
		return string(s.State)
	case units.Waiting:
		return "activating"
	}
	return "inactive"
}

func (c *systemctlCall) isActive() int {
	return c.report(func(state string) bool { return state == "active" })
}

func (c *systemctlCall) isFailed() int {
	return c.report(func(state string) bool { return state == "failed" })
}

// report prints the state of each unit; the exit status is zero if good returns true for at least one.
func (c *systemctlCall) report(good func(state string) bool) int {
	statuses, err := c.statuses()
	if err != nil {
		return c.fail("systemctl: %v", err)
	}
	code := exitNotActive
	for _, name := range c.units {
		state := activeState(statuses[name])
		c.print("%s", state)
		if good(state) {
			code = 0
		}
	}
	return code
}

func (c *systemctlCall) status() int {
	statuses, err := c.statuses()
	if err != nil {
		return c.fail("systemctl: %v", err)
	}
	code := 0
	for _, name := range c.units {
		status := statuses[name]
		c.print("%s\n     Active: %s\n     Restarts: %d\n     %s", name, activeState(status), status.Restarts, status.Message)
		if _, err := units.Load(name, c.UnitDirs); err != nil {
			code = exitNotFound
		} else if activeState(status) != "active" {
			code = exitNotActive
		}
	}
	return code
}

// show prints the properties that programs request.
func (c *systemctlCall) show() int {
	statuses, err := c.statuses()
	if err != nil {
		return c.fail("systemctl: %v", err)
	}
	for _, name := range c.units {
		values := c.propertiesOf(name, statuses[name])
		wanted := c.properties
		if len(wanted) == 0 {
			wanted = []string{"Id", "LoadState", "ActiveState", "UnitFileState", "NRestarts", "Result"}
		}
		for _, key := range wanted {
			if c.value {
				c.print("%s", values[key])
			} else {
				c.print("%s=%s", key, values[key])
			}
		}
	}
	return 0
}

func (c *systemctlCall) propertiesOf(name string, status units.Status) map[string]string {
	values := map[string]string{
		"Id": name, "LoadState": "loaded", "ActiveState": activeState(status), "NRestarts": strconv.Itoa(status.Restarts), "Result": "success",
	}
	if status.State == units.Failed {
		values["Result"] = "exit-code"
	}
	state, err := units.FileState(name, c.UnitDirs[0], c.UnitDirs)
	if err != nil {
		values["LoadState"] = "not-found"
	}
	values["UnitFileState"] = state
	return values
}
