// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/devcluster/cluster"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
)

// Status prints what runs. Its error names what does not run.
func (e *Environment) Status(ctx context.Context) error {
	management, err := machine.Lookup(e.Management())
	if err != nil || !management.Running() {
		err := fmt.Errorf("the environment in %s does not run: start it with devcluster up", e.Dir)
		return e.blameLog(err, cluster.Machine(e.Env, env.Nodes(1)[0]).Console())
	}
	services, err := management.Units()
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%-26s %-10s %s\n", "SERVICE", "STATE", "RESTARTS")
	for _, name := range slices.Sorted(maps.Keys(services)) {
		status := services[name]
		line := fmt.Sprintf("%-26s %-10s %d %s", strings.TrimSuffix(name, ".service"), status.State, status.Restarts, status.Message)
		fmt.Fprintln(e.Out, strings.TrimSpace(line))
	}
	fmt.Fprintf(e.Out, "\n%-26s %s\n%-26s %s (CA %s)\n", "kubeconfig", e.Kubeconfig(), "registry", env.Registry, e.RegistryCA())
	fmt.Fprintf(e.Out, "%-26s %s (keys %s)\n", "MAAS", env.MAASURL, filepath.Join(e.MAAS(), "*.key"))
	fmt.Fprintf(e.Out, "%-26s https://%s (CA %s, credentials %s)\n", "object store", env.S3, e.StoreCA(), e.StoreCredentials())
	return errors.Join(e.machineStatus(), e.serving(ctx))
}

func (e *Environment) machineStatus() error {
	dirs, err := filepath.Glob(filepath.Join(e.Machines(), "*"))
	if err != nil {
		return err
	}
	others, err := filepath.Glob(e.Management() + "-*")
	if err != nil {
		return err
	}
	for _, dir := range append(others, dirs...) {
		found, err := machine.Lookup(dir)
		if err != nil {
			continue // This folder contains only a machine's disks.
		}
		state := "off"
		if found.Running() {
			state = "on"
		}
		fmt.Fprintf(e.Out, "%-26s %s\n", "machine "+filepath.Base(dir), state)
	}
	return nil
}

// serving checks every part that was started.
func (e *Environment) serving(ctx context.Context) error {
	parts := map[string]string{"management API": fmt.Sprintf("%s:%d", env.Gateway, env.APIPort), "registry": env.Registry, "object store": env.S3}
	if e.simulator().Known() {
		parts["MAAS simulator"] = env.MAASListen
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if err := dial(ctx, parts[name]); err != nil {
			errs = append(errs, fmt.Errorf("the %s does not serve: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
