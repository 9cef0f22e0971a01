package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
)

// Status prints what runs. The error says what does not.
func (e *Environment) Status(ctx context.Context) error {
	management, err := machine.Lookup(e.Management())
	if err != nil || !management.Running() {
		return fmt.Errorf("the environment in %s does not run: start it with devcluster up", e.Dir)
	}
	units, err := management.Units()
	if err != nil {
		return err
	}
	var names []string
	for name := range units {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(e.Out, "%-32s %+v\n", name, units[name])
	}
	fmt.Fprintf(e.Out, "kubeconfig %s\nregistry   %s (CA %s)\nMAAS       %s\n", e.Kubeconfig(), env.Registry, e.RegistryCA(), env.MAASURL)
	return errors.Join(e.machineStatus(), e.serving(ctx))
}

func (e *Environment) machineStatus() error {
	dirs, err := filepath.Glob(filepath.Join(e.Machines(), "*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if found, err := machine.Lookup(dir); err == nil {
			fmt.Fprintf(e.Out, "machine %-10s running=%t\n", filepath.Base(dir), found.Running())
		}
	}
	return nil
}

func (e *Environment) serving(ctx context.Context) error {
	var errs []error
	for _, part := range []struct{ name, address string }{
		{"management API", fmt.Sprintf("%s:%d", env.Gateway, env.APIPort)},
		{"registry", env.Registry},
		{"MAAS simulator", env.MAASListen},
	} {
		if err := dial(ctx, part.address); err != nil {
			errs = append(errs, fmt.Errorf("the %s does not serve: %w", part.name, err))
		}
	}
	return errors.Join(errs...)
}
