// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/test/machine/tools"
)

// Boot is what a machine's operating system does before the units start: it runs as the machine's PID 1, in its root
// file system and network. A Boot that fails stops the machine; the error is the last line of its console.
type Boot func(ctx context.Context, system *System) error

// System is the machine as its own PID 1 sees it.
type System struct {
	// Config is what the machine was started with.
	Config Config
}

// Init turns the process into a machine's PID 1, and does not return, if that is what it was started as; else it does
// nothing. Programs that start machines call it first thing in main (tests: in TestMain). boots are the programs that
// Config.Boot can name.
func Init(boots map[string]Boot) {
	if role, ok := roles[os.Args[0]]; ok {
		os.Exit(role(boots))
	}
	if name := filepath.Base(os.Args[0]); tools.Commands[name] != nil && inMachine() {
		os.Exit(tools.Run(name, os.Args[1:], systemUnitDirs))
	}
}

// inMachine tells a machine's programs from those of the host that are named alike.
func inMachine() bool { return exists(insideConfig) }
