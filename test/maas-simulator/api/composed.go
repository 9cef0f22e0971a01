// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// notComposed is the beginning of MAAS's error message if the VM host's driver fails.
const notComposed = "Unable to compose machine because: "

// composeOn composes a VM. Its status is New, or Ready if commissioning is skipped.
func (c *call) composeOn(h *inventory.VMHost, o order) (*inventory.Machine, error) {
	if err := c.overCommits(h, o); err != nil {
		return nil, err
	}
	nics, err := c.requestedInterfaces(h, o)
	if err != nil {
		return nil, err
	}
	if err := c.driverFails(h); err != nil {
		return nil, err
	}
	pools, err := c.diskPools(h, o.disks)
	if err != nil {
		return nil, err
	}
	m := c.newVM(h, o)
	for i, d := range o.disks {
		m.Disks = append(m.Disks, inventory.Disk{
			ID: c.DB.Next("blockdevices"), Name: "sd" + string(rune('a'+i)), Type: "physical", Size: d.Bytes, Tags: append([]string{}, d.Tags...), Pool: pools[i],
			Extra: map[string]any{"model": "QEMU HARDDISK", "serial": "lxd_" + diskLabel(i)},
		})
	}
	if o.skipCommissioning {
		stand(m)
	}
	if err := c.wire(m, nics); err != nil {
		return nil, err
	}
	c.DB.Machines.Put(m)
	return m, nil
}

func diskLabel(i int) string {
	if i == 0 {
		return "root"
	}
	return fmt.Sprintf("disk%d", i)
}

// overCommits returns an error if the requested VM exceeds the host's resources at its over-commit ratios.
func (c *call) overCommits(h *inventory.VMHost, o order) error {
	used := c.DB.Used(h)
	message := ""
	const words = "%s overcommit ratio is %s and there are %d available resources; %d requested."
	if float64(h.Cores)*h.CPUOverCommit < float64(used.Cores+o.cores) {
		message = fmt.Sprintf(words, "CPU", render.Ratio(h.CPUOverCommit), h.Cores-used.Cores, o.cores)
	}
	if float64(h.Memory)*h.MemoryOverCommit < float64(used.Memory+o.memory) {
		message += fmt.Sprintf(words, "Memory", render.Ratio(h.MemoryOverCommit), h.Memory-used.Memory, o.memory)
	}
	if message != "" {
		return problem.Unavailable("Unable to compose KVM instance in '%s'. %s", h.Name, message)
	}
	return nil
}

// driverFails returns the error of the host's driver, if any.
func (c *call) driverFails(h *inventory.VMHost) error {
	if h.Away {
		return problem.Unavailable(notComposed+unreachable, h.ID)
	}
	target := faults.Target{SystemID: fmt.Sprint(h.ID), Hostname: h.Name}
	if rule, hit := c.Life.Faults.Machine(faults.ComposeFails, target); hit {
		return problem.Unavailable("%sFailed talking to pod: %s", notComposed, rule.Text("Failed creating instance record"))
	}
	return nil
}

// diskPools selects the storage pool of each disk: the pool that a tag of the disk names, or else the default pool. If
// a pool has insufficient space, the driver fails with an error that MAAS does not handle.
func (c *call) diskPools(h *inventory.VMHost, disks []constraints.Disk) ([]string, error) {
	free := map[string]int64{}
	used := c.DB.Used(h)
	for _, p := range h.StoragePools {
		free[p.ID] = p.Total - used.Pools[p.ID]
	}
	var chosen []string
	for _, d := range disks {
		named := slices.DeleteFunc(slices.Clone(h.StoragePools), func(p inventory.StoragePool) bool { return !slices.Contains(d.Tags, p.Name) })
		candidates, refusal := named, "Not enough storage space on storage pools: %s"
		if len(candidates) == 0 {
			candidates = slices.DeleteFunc(slices.Clone(h.StoragePools), func(p inventory.StoragePool) bool { return !p.Default })
			refusal = "Not enough space in default storage pool: %s"
		}
		if len(candidates) == 0 {
			candidates, refusal = h.StoragePools, "Not enough storage space on any storage pools: %s"
		}
		at := slices.IndexFunc(candidates, func(p inventory.StoragePool) bool { return d.Bytes <= free[p.ID] })
		if at < 0 {
			return nil, problem.Text(500, refusal, poolNames(candidates))
		}
		free[candidates[at].ID] -= d.Bytes
		chosen = append(chosen, candidates[at].ID)
	}
	return chosen, nil
}

func poolNames(pools []inventory.StoragePool) string {
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// newVM returns the machine of a new VM, without disks and interfaces.
func (c *call) newVM(h *inventory.VMHost, o order) *inventory.Machine {
	cores := o.cores
	if len(o.pinned) > 0 {
		cores = len(o.pinned)
	}
	m := &inventory.Machine{
		ID: c.DB.Next("machines"), SystemID: c.DB.NewSystemID(), Hostname: o.hostname, DomainID: o.domain, ZoneID: o.zone, PoolID: o.pool,
		Architecture: o.architecture, CPUCount: cores, Memory: o.memory, Status: status.New, Previous: status.New, Netboot: true,
		PowerType: h.Type, PowerState: "off", PodID: &h.ID, Token: c.DB.NewToken(), Extra: map[string]any{"bios_boot_method": "uefi"},
	}
	if m.Hostname == "" {
		m.Hostname = c.DB.NewHostname()
	}
	m.VM = &inventory.VM{ID: c.DB.Next("virtualmachines"), Instance: m.Hostname, Project: h.Project(), PinnedCores: o.pinned, Hugepages: o.huge}
	m.PowerParameters = map[string]any{"instance_name": m.Hostname}
	for key, value := range h.Parameters {
		m.PowerParameters[key] = value
	}
	for _, tag := range h.Tags {
		if c.DB.Tags.Get(tag) == nil {
			c.DB.Tags.Put(&inventory.Tag{ID: c.DB.Next("tags"), Name: tag})
		}
		m.Tags = append(m.Tags, tag)
	}
	return m
}
