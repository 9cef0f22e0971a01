// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/maas"
)

// StageVirtual is reached when MAAS has composed the machines of a pool and they have become nodes.
const StageVirtual = "virtual machines ready"

// AdminKeyFile returns the file with the API key of a MAAS administrator, which is required to compose machines.
func (w *Walker) AdminKeyFile() string { return w.Path("maas", "admin.key") }

// CreateVirtualPool creates a pool of machines that MAAS composes on its LXD hosts, as a user would; extra flags come
// last.
func (w *Walker) CreateVirtualPool(ctx context.Context, cluster, pool string, replicas int, extra ...string) error {
	argv := []string{"hypershift", "create", "nodepool", "maas", "--name", pool, "--cluster-name", cluster, "--replicas", fmt.Sprint(replicas),
		"--lxd-enabled", "--min-cpu", "2", "--min-memory", "2048", "--lxd-disk-size", "10", "--erase", "None", "--image", "ubuntu/noble"}
	return w.Type(ctx, append(argv, extra...)...)
}

// FollowVirtualPool waits until a pool of virtual machines has its nodes, and prints their hosts.
func (w *Walker) FollowVirtualPool(ctx context.Context, cluster, pool string, count int) error {
	c, err := w.Management()
	if err != nil {
		return err
	}
	return w.Reach(ctx, StageVirtual, nodesLimit, All(PoolReplicas(c, pool, int32(count)), MachinesOnHosts(c, cluster, pool, count))) //nolint:gosec // a handful
}

// MachinesOnHosts checks that count virtual machines of a pool are on LXD hosts; its progress names the hosts.
func MachinesOnHosts(c client.Client, cluster, pool string, count int) Check {
	return func(ctx context.Context) (bool, string, error) {
		all, err := Machines(ctx, c, cluster, pool)
		if err != nil {
			return false, "", err
		}
		var placed []string
		for _, m := range all {
			if m.Status.LXDHost != "" {
				placed = append(placed, describeMachine(m)+" on "+m.Status.LXDHost)
			}
		}
		slices.Sort(placed)
		return len(placed) == count && len(all) == count, strings.Join(placed, ", "), nil
	}
}

// OnHosts counts the virtual machines of each LXD host, by host name.
func OnHosts(ctx context.Context, m *maas.Client) (map[string]int, error) {
	machines, err := m.ListMachines(ctx, maas.MachineFilter{})
	on := map[string]int{}
	for i := range machines {
		if machines[i].Pod != nil {
			on[machines[i].Pod.Name]++
		}
	}
	return on, err
}
