// SPDX-License-Identifier: Apache-2.0

// Command fake replaces the programs of an OpenShift release that are not built from openshift/hypershift. The name it
// is called by selects what it does:
//
//   - fake: sleeps, or returns at once with the argument exit, as a Job does.
//   - hyperkube: starts a component of Kubernetes with those flags of OpenShift's that Kubernetes has.
//   - bash, sh: write the here-documents of a script to files, and copy single files.
//   - machine-config-server: serves a node's configuration by HTTP.
//   - another machine-config program: creates its output folder.
//   - any other name: returns at once.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	switch {
	case name == "fake":
		if len(args) > 0 && args[0] == "exit" {
			return nil
		}
		select {}
	case name == "hyperkube":
		return hyperkube(args)
	case name == "bash" || name == "sh":
		if len(args) == 0 {
			return nil
		}
		return script(args[len(args)-1])
	case strings.HasPrefix(name, "machine-config-server"):
		return serveConfig(args)
	case strings.HasPrefix(name, "machine-config-"):
		return makeOutput(args)
	}
	return nil
}

// flag returns the value of a flag, as "--name=value" or "--name value".
func flag(args []string, name string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
		if arg == "--"+name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
