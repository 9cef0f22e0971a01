// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

// Push pushes the images of the last build, and the release payloads that contain them, to the running registry.
func (e *Environment) Push(ctx context.Context) error {
	ca, err := os.ReadFile(e.RegistryCA())
	if err != nil {
		return fmt.Errorf("the environment does not run (%w): start it with devcluster up", err)
	}
	if err := images.Push(ctx, e.Images(), env.Registry, ca); err != nil {
		return err
	}
	return e.buildPayloads(ctx)
}

// ListImages prints the pull specification of the image in args, or of all images.
func (e *Environment) ListImages(ctx context.Context, args []string) error {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return err
	}
	releases, err := images.Releases(ctx, e.Bin)
	if err != nil {
		return err
	}
	for _, release := range releases {
		specs["release"+release.Suffix] = Payload(release.Version)
	}
	names := slices.Sorted(maps.Keys(specs))
	if len(args) == 0 {
		for _, name := range names {
			fmt.Fprintf(e.Out, "%-33s %s\n", name, specs[name])
		}
		return nil
	}
	spec, ok := specs[args[0]]
	if !ok {
		return fmt.Errorf("there is no image %q: the images are %s", args[0], strings.Join(names, ", "))
	}
	fmt.Fprintln(e.Out, spec)
	return nil
}

// StartMAAS starts the MAAS simulator with MAASArguments, or restarts it if it runs.
func (e *Environment) StartMAAS(ctx context.Context) error {
	if !e.running() {
		return errors.New("the environment does not run: start it with devcluster up")
	}
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.simulator().Stop(ctx); err != nil {
		return err
	}
	return e.upSimulator(ctx)
}

// StopMAAS stops the MAAS simulator.
func (e *Environment) StopMAAS(ctx context.Context) error { return e.simulator().Stop(ctx) }
