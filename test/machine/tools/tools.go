// SPDX-License-Identifier: Apache-2.0

// Package tools provides replacements for operating system programs that need systemd, a boot loader, or a separate
// kernel. They change the machine where that is possible, and never the host.
package tools

import (
	"fmt"
	"io"
	"os"

	"github.com/openshift/hypershift/test/machine/control"
)

// Dir contains a link for each tool, in the machine.
const Dir = "/run/machine/tools"

// System is the machine that the tools change.
type System struct {
	// Root is the root file system: "/" in a machine.
	Root string
	// Socket is the path of PID 1's socket.
	Socket string
	// UnitDirs contain the unit files; the first one with a unit takes precedence. Links and masks are created in the
	// first.
	UnitDirs    []string
	Out, ErrOut io.Writer
}

// Command is a tool: it returns its exit status.
type Command func(s System, args []string) int

// Commands maps names to tools.
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

// Run runs the tool with this name in the machine of this process.
func Run(name string, args []string, unitDirs []string) int {
	return Commands[name](System{Root: "/", Socket: control.Socket, UnitDirs: unitDirs, Out: os.Stdout, ErrOut: os.Stderr}, args)
}

// quiet does nothing, for features that a machine lacks: swap, a udev daemon.
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

// shutdown supports -r and --reboot. It ignores a delay and always acts immediately.
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
