// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
)

// MAASKeyFile returns the file with the API key of a regular MAAS user, which the scenario uses.
func (w *Walker) MAASKeyFile() string { return w.Path("maas", "alice.key") }

// MAAS returns a client of the environment's MAAS with an administrator's key, for checks that a user cannot do.
func (w *Walker) MAAS() (*maas.Client, error) {
	key, err := os.ReadFile(w.AdminKeyFile())
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's key of the simulated MAAS: %w", err)
	}
	return maas.NewClient(maas.Config{Endpoint: env.MAASURL, APIKey: strings.TrimSpace(string(key))})
}

// MAASReady checks that every machine of MAAS is Ready, which means that none is allocated.
func MAASReady(c *maas.Client) Check {
	return func(ctx context.Context) (bool, string, error) {
		all, err := c.ListMachines(ctx, maas.MachineFilter{})
		if err != nil {
			return false, "", err
		}
		var busy []string
		for _, m := range all {
			if m.Status == maas.StatusAllocated || m.Status == maas.StatusDeploying || m.Status == maas.StatusDeployed || m.Status == maas.StatusReleasing {
				busy = append(busy, m.Hostname+" "+m.StatusName)
			}
		}
		return len(busy) == 0, strings.Join(busy, ", "), nil
	}
}
