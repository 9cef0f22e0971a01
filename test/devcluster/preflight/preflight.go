// SPDX-License-Identifier: Apache-2.0

// Package preflight checks, before anything is started, whether this machine can run the embedded environment. Each
// problem is one sentence that says what is missing or conflicts, and what to do.
package preflight

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/env"
)

// check returns one error for each problem it finds.
type check func(ctx context.Context, e env.Env) []error

// machine lists the checks of the host, in the order in which users need the results. The later ones need root.
var machine = []check{commands, cgroups, packetFilter, leftovers, address, disk, memory}

// Machine returns everything that prevents this host from running the environment, so that the user learns it before
// the long build.
func Machine(ctx context.Context, e env.Env) []error { return run(ctx, e, machine) }

// Run returns every problem, including problems of the build. The list is empty if the environment can be started.
func Run(ctx context.Context, e env.Env) []error {
	return run(ctx, e, slices.Concat(machine, []check{binaries}))
}

func run(ctx context.Context, e env.Env, checks []check) []error {
	if unix.Geteuid() != 0 {
		return []error{fmt.Errorf("the embedded environment needs root to make namespaces and mounts: run it as root, for example with sudo")}
	}
	var problems []error
	for _, check := range checks {
		problems = append(problems, check(ctx, e)...)
	}
	return problems
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
