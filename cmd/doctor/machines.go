// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/maas"
)

const (
	// QuarantineTag is the tag of machines on which deployments failed. The provider does not allocate them.
	QuarantineTag = "hypershift-quarantine"

	// The least machine that any payload requires.
	leastCPU       = 2
	leastMemoryMiB = 2048
	bytesPerGB     = 1_000_000_000
)

// constraint is one requirement for a machine.
type constraint struct {
	text string
	fits func(maas.Machine) bool
}

func (m *MAAS) constraints() []constraint {
	var all []constraint
	add := func(wanted bool, fits func(maas.Machine) bool, format string, args ...any) {
		if wanted {
			all = append(all, constraint{fmt.Sprintf(format, args...), fits})
		}
	}
	cpu, memory := max(m.MinCPU, leastCPU), max(m.MinMemoryMiB, leastMemoryMiB)
	add(len(m.Zones) > 0, func(c maas.Machine) bool { return m.inZone(c.Zone.Name) }, "in zone %s",
		strings.Join(m.Zones, " or "))
	add(m.Pool != "", func(c maas.Machine) bool { return c.Pool.Name == m.Pool }, "in resource pool %s", m.Pool)
	add(true, func(c maas.Machine) bool { return strings.HasPrefix(c.Architecture+"/", m.Architecture+"/") },
		"of architecture %s", m.Architecture)
	add(true, func(c maas.Machine) bool { return c.CPUCount >= cpu }, "with %d cores or more", cpu)
	add(true, func(c maas.Machine) bool { return c.MemoryMiB >= memory }, "with %d MiB of memory or more", memory)
	add(m.MinDiskGB > 0, func(c maas.Machine) bool {
		return len(c.PhysicalBlockDevices) > 0 && c.PhysicalBlockDevices[0].Size/bytesPerGB >= int64(m.MinDiskGB)
	}, "with a root disk of %d GB or more", m.MinDiskGB)
	for _, tag := range m.Tags {
		add(true, func(c maas.Machine) bool { return slices.Contains(c.TagNames, tag) }, "with tag %s", tag)
	}
	for _, tag := range append(slices.Clone(m.NotTags), QuarantineTag) {
		add(true, func(c maas.Machine) bool { return !slices.Contains(c.TagNames, tag) }, "without tag %s", tag)
	}
	add(len(m.Quarantined) > 0, func(c maas.Machine) bool { return !m.Quarantined[c.SystemID] },
		"that the cluster has not quarantined")
	add(true, func(c maas.Machine) bool { return !c.Locked }, "that are not locked")
	return all
}

// machines counts the Ready machines that match, and names the constraints that exclude others.
func (m *MAAS) machines(ctx context.Context) Outcome {
	ready, err := m.api().ListMachines(ctx, maas.MachineFilter{Statuses: []maas.Status{maas.StatusReady}})
	if err != nil {
		return m.problem(err)
	}
	var counts string
	m.fit, counts = m.Fit(ready)
	remedy := "enlist, commission or release machines, or relax the constraints"
	switch {
	case len(ready) == 0:
		return failed(remedy, "MAAS has no Ready machine that the user of the API key may see")
	case len(m.fit) == 0:
		return failed(remedy, "no Ready machine of MAAS fits: %s", counts)
	case len(m.fit) < m.Machines:
		return warn(remedy, "%d of %d machines are Ready and fit now: %s", len(m.fit), m.Machines, counts)
	}
	return ok("%d machines are Ready and fit now: %s", len(m.fit), counts)
}

// Fit returns the machines that match, and how many each constraint leaves, such as "5 Ready, of these 3 in zone az1".
// All of the given machines are Ready.
func (m *MAAS) Fit(ready []maas.Machine) (fit []maas.Machine, counts string) {
	fit = ready
	steps := []string{fmt.Sprintf("%d Ready", len(ready))}
	for _, c := range m.constraints() {
		next := slices.DeleteFunc(slices.Clone(fit), func(machine maas.Machine) bool { return !c.fits(machine) })
		if len(next) < len(fit) {
			steps = append(steps, fmt.Sprintf("of these %d %s", len(next), c.text))
		}
		fit = next
	}
	return fit, strings.Join(steps, ", ")
}

// subnets checks the networks of the machines that match.
func (m *MAAS) subnets(context.Context) Outcome {
	if len(m.fit) == 0 {
		return skipped("", "no machine fits whose networks could be checked")
	}
	var cidrs, segments, dark []string
	for _, machine := range m.fit {
		nic := machine.BootInterface
		if nic == nil || nic.VLAN == nil {
			continue
		}
		segments = append(segments, fmt.Sprintf("%s/%d", nic.VLAN.Fabric, nic.VLAN.VID))
		if !nic.VLAN.DHCPOn {
			dark = append(dark, machine.Hostname)
		}
		for _, link := range nic.Links {
			if link.Subnet != nil {
				cidrs = append(cidrs, link.Subnet.CIDR)
			}
		}
	}
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue // MAAS lists no other text.
		}
		if i := slices.IndexFunc(m.Networks, prefix.Overlaps); i >= 0 {
			return failed("choose other networks with --cluster-cidr and --service-cidr",
				"subnet %s of machines overlaps with %s, a network of pods or Services of the cluster", cidr, m.Networks[i])
		}
	}
	if len(dark) > 0 {
		return warn("enable DHCP of MAAS on the VLAN of their boot interface, or check that another server relays it",
			"%d of %d machines boot from a VLAN without DHCP of MAAS: %s", len(dark), len(m.fit), listed(dark))
	}
	if vlans := slices.Compact(slices.Sorted(slices.Values(segments))); m.Flat && len(vlans) > 1 {
		return warn("restrict the machines by zone, pool or tag to one VLAN, or bring a network with --network-type Other",
			"the machines are on %d VLANs (%s), and the default network of nodes needs one", len(vlans), listed(vlans))
	}
	return ok("machines are on subnets %s", listed(cidrs))
}
