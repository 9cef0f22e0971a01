// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/test/machine/tools"
)

// Boot does what a machine's operating system does before the units start. It runs as the machine's PID 1, in its root
// file system and network. If it fails, the machine stops, and the error is the last line of its console.
type Boot func(ctx context.Context, system *System) error

// System is the machine, as seen by its PID 1.
type System struct {
	// Config is the configuration with which the machine was started.
	Config Config
}

// Init runs the machine's PID 1 and does not return, if the process was started as a PID 1. Otherwise, it does
// nothing. Programs that start machines must call it first in main (tests: in TestMain). boots maps the names that
// Config.Boot can have to functions.
func Init(boots map[string]Boot) {
	if role, ok := roles[os.Args[0]]; ok {
		os.Exit(role(boots))
	}
	if name := filepath.Base(os.Args[0]); tools.Commands[name] != nil && inMachine() {
		os.Exit(tools.Run(name, os.Args[1:], systemUnitDirs))
	}
}

// inMachine reports whether the process runs in a machine, to distinguish its programs from host programs with the same
// name.
func inMachine() bool { return exists(insideConfig) }
