// SPDX-License-Identifier: Apache-2.0

// Package tools is what stands in a machine for the programs of an operating system that need systemd, a boot loader, or a
// kernel of their own. They do what can be done to the machine, and nothing to the host.
package tools

import (
	"fmt"
	"io"
	"os"

	"github.com/openshift/hypershift/test/machine/control"
)

// Dir holds a link for each tool, in the machine.
const Dir = "/run/machine/tools"

// System is what the tools work on.
type System struct {
	// Root is the root file system: "/" in a machine.
	Root string
	// Socket is where PID 1 listens.
	Socket string
	// UnitDirs hold the unit files, the first that has one winning; the first is where links and masks are made.
	UnitDirs    []string
	Out, ErrOut io.Writer
}

// Command is a tool: it returns its exit status.
type Command func(s System, args []string) int

// Commands are the tools, by name.
var Commands = map[string]Command{
	"systemctl":   systemctl,
	"modprobe":    modprobe,
	"swapoff":     quiet,
	"swapon":      quiet,
	"udevadm":     quiet,
	"update-grub": updateGrub,
	"reboot":      power(control.Reboot),
	"poweroff":    power(control.PowerOff),
	"shutdown":    shutdown,
}

// Run runs the tool of that name in the machine that this process is in.
func Run(name string, args []string, unitDirs []string) int {
	return Commands[name](System{Root: "/", Socket: control.Socket, UnitDirs: unitDirs, Out: os.Stdout, ErrOut: os.Stderr}, args)
}

// quiet is for what a machine has nothing of: swap, a udev daemon.
func quiet(System, []string) int { return 0 }

func (s System) fail(format string, args ...any) int {
	fmt.Fprintf(s.ErrOut, format+"\n", args...)
	return 1
}

func power(verb control.Verb) Command {
	return func(s System, _ []string) int {
		if _, err := control.Ask(s.Socket, control.Request{Verb: verb}); err != nil {
			return s.fail("%s: %v", verb, err)
		}
		return 0
	}
}

// shutdown knows -r and --reboot; a delay other than now is not waited for.
func shutdown(s System, args []string) int {
	verb := control.PowerOff
	for _, arg := range args {
		switch arg {
		case "-r", "--reboot":
			verb = control.Reboot
		case "-c":
			return s.fail("shutdown: nothing is planned")
		}
	}
	return power(verb)(s, nil)
}
