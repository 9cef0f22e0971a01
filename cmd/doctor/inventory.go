// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openshift/hypershift/support/maas"
)

// Inventory is what a MAAS has, as far as the user of the API key may see it.
type Inventory struct {
	// Endpoint is the URL of the MAAS.
	Endpoint string
	// Machines are all machines, of any status.
	Machines []maas.Machine
	// Hosts are the LXD hosts.
	Hosts []maas.VMHost
}

// Inventory connects to the MAAS, and reads its machines and LXD hosts. An error is one sentence that ends with the
// remedy.
func (m *MAAS) Inventory(ctx context.Context) (*Inventory, error) {
	if o := m.endpoint(ctx); o.Status == Failed || o.Status == Skipped {
		return nil, o.err()
	}
	inventory := &Inventory{Endpoint: strings.TrimSuffix(m.api().Endpoint(), "/api/2.0/")}
	var err error
	if inventory.Machines, err = m.api().ListMachines(ctx, maas.MachineFilter{}); err != nil {
		return nil, m.problem(err).err()
	}
	hosts, err := m.api().ListVMHosts(ctx)
	if err != nil && !maas.IsGone(err) {
		return nil, m.problem(err).err()
	}
	for _, host := range hosts {
		if host.Type == lxdType {
			inventory.Hosts = append(inventory.Hosts, host)
		}
	}
	return inventory, nil
}

// Compose returns how many virtual machines the free cores and the free memory of the hosts in the zones suffice for,
// and which hosts these are.
func (m *MAAS) Compose(hosts []maas.VMHost) (count int, from string) {
	cpu, memory := max(m.MinCPU, leastCPU), max(m.MinMemoryMiB, leastMemoryMiB)
	var names []string
	for _, host := range hosts {
		if !m.inZone(host.Zone.Name) {
			continue
		}
		free := host.Available
		count += max(0, min(free.Cores/cpu, free.Memory/memory))
		names = append(names, fmt.Sprintf("%s (%d cores, %d MiB free)", host.Name, free.Cores, free.Memory))
	}
	if len(names) == 0 {
		return 0, fmt.Sprintf("none of %d LXD hosts is in the zone", len(hosts))
	}
	return count, fmt.Sprintf("virtual machines of %d cores and %d MiB on LXD hosts %s", cpu, memory, listed(names))
}

// err returns a failure as an error: the finding, then the remedy.
func (o Outcome) err() error {
	parts := []string{line(o.Message)}
	if o.Remedy != "" {
		parts = append(parts, line(o.Remedy))
	}
	return errors.New(strings.Join(parts, "; "))
}
