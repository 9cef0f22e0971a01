// SPDX-License-Identifier: Apache-2.0

// Package placement selects the MAAS machines that match a request, and explains why none does. All functions are pure.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// BytesPerGB is the size of a decimal gigabyte, the unit of disk sizes in MAAS.
const BytesPerGB = 1_000_000_000

// Request holds the requirements for a machine. Zero fields require nothing.
type Request struct {
	// MinCPU is in cores, MinMemoryMiB in MiB, MinDiskGB in 10^9 bytes (of the root disk).
	MinCPU, MinMemoryMiB, MinDiskGB int
	// Zones holds the allowed zones in order of preference.
	Zones []string
	Pool  string
	// Architecture is "amd64" or "amd64/generic".
	Architecture  string
	Tags, NotTags []string
	// Composed permits virtual machines that were composed for a MaasMachine.
	Composed bool
	// Subnet is the subnet on which the machine must have an interface.
	Subnet *maas.Subnet
}

// Of returns the requirements of a MaasMachine spec, without a zone.
func Of(spec infrav1.MaasMachineSpec) Request {
	return Request{
		MinCPU:       spec.CPUs(),
		MinMemoryMiB: spec.MemoryMiB(),
		MinDiskGB:    ptr.Deref(spec.MinDiskSize, 0),
		Pool:         ptr.Deref(spec.ResourcePool, ""),
		Architecture: spec.Arch,
		Tags:         spec.Tags,
		NotTags:      spec.NotTags,
	}
}

// constraint is one requirement for a machine.
type constraint struct {
	// suits reports whether a machine meets the constraint.
	suits func(maas.Machine) bool
	// one and many describe the machines that meet the constraint: "is in zone az1", "are in zone az1".
	one, many string
	// lacks describes the problem of a machine that does not meet the constraint.
	lacks func(maas.Machine) string
}

func (r Request) constraints() []constraint {
	var all []constraint
	add := func(wanted bool, c constraint) {
		if wanted {
			all = append(all, c)
		}
	}
	add(len(r.Zones) > 0, within("in zone", r.Zones, func(m maas.Machine) string { return m.Zone.Name }))
	add(r.Pool != "", within("in resource pool", []string{r.Pool}, func(m maas.Machine) string { return m.Pool.Name }))
	add(r.Architecture != "", architecture(r.Architecture))
	all = append(all, // A minimum of zero is met by every machine.
		atLeast(r.MinCPU, "cores", func(m maas.Machine) int { return m.CPUCount }),
		atLeast(r.MinMemoryMiB, "MiB of memory", func(m maas.Machine) int { return m.MemoryMiB }),
		atLeast(r.MinDiskGB, "GB of disk", diskGB))
	for _, tag := range r.Tags {
		all = append(all, tagged(tag))
	}
	for _, tag := range r.NotTags {
		all = append(all, untagged(tag))
	}
	if r.Subnet != nil {
		all = append(all, connected(r.Subnet))
	}
	add(!r.Composed, notComposed)
	return append(all, untagged(quarantine.Tag))
}

// notComposed excludes virtual machines that were composed for a MaasMachine, since that MaasMachine will allocate
// them.
var notComposed = constraint{
	suits: func(m maas.Machine) bool { return !lxd.IsVM(m) || lxd.UIDOf(m.Hostname) == "" },
	one:   "is not a virtual machine of another MaasMachine",
	many:  "are not virtual machines of other MaasMachines",
	lacks: func(m maas.Machine) string { return "was composed for another MaasMachine" },
}

func connected(subnet *maas.Subnet) constraint {
	return constraint{
		suits: func(m maas.Machine) bool { return staticip.Interface(&m, subnet) != nil },
		one:   fmt.Sprintf("has an interface on subnet %s", subnet.CIDR),
		many:  fmt.Sprintf("have an interface on subnet %s", subnet.CIDR),
		lacks: func(maas.Machine) string { return fmt.Sprintf("has no interface on subnet %s", subnet.CIDR) },
	}
}

func within(what string, wanted []string, have func(maas.Machine) string) constraint {
	quoted := make([]string, 0, len(wanted))
	for _, name := range slices.Sorted(slices.Values(wanted)) {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	want := strings.Join(quoted, " or ")
	return constraint{
		suits: func(m maas.Machine) bool { return slices.Contains(wanted, have(m)) },
		one:   fmt.Sprintf("is %s %s", what, want),
		many:  fmt.Sprintf("are %s %s", what, want),
		lacks: func(m maas.Machine) string { return fmt.Sprintf("is %s %q instead of %s", what, have(m), want) },
	}
}

func atLeast(want int, unit string, have func(maas.Machine) int) constraint {
	return constraint{
		suits: func(m maas.Machine) bool { return have(m) >= want },
		one:   fmt.Sprintf("has %d %s", want, unit),
		many:  fmt.Sprintf("have %d %s", want, unit),
		lacks: func(m maas.Machine) string { return fmt.Sprintf("has %d instead of %d %s", have(m), want, unit) },
	}
}

func architecture(want string) constraint {
	return constraint{
		suits: func(m maas.Machine) bool {
			return m.Architecture == want || strings.HasPrefix(m.Architecture, want+"/")
		},
		one:   fmt.Sprintf("is of architecture %s", want),
		many:  fmt.Sprintf("are of architecture %s", want),
		lacks: func(m maas.Machine) string { return fmt.Sprintf("is of architecture %s", m.Architecture) },
	}
}

func tagged(tag string) constraint {
	return constraint{
		suits: func(m maas.Machine) bool { return slices.Contains(m.TagNames, tag) },
		one:   fmt.Sprintf("has tag %q", tag),
		many:  fmt.Sprintf("have tag %q", tag),
		lacks: func(maas.Machine) string { return fmt.Sprintf("lacks tag %q", tag) },
	}
}

func untagged(tag string) constraint {
	return constraint{
		suits: func(m maas.Machine) bool { return !slices.Contains(m.TagNames, tag) },
		one:   fmt.Sprintf("is without tag %q", tag),
		many:  fmt.Sprintf("are without tag %q", tag),
		lacks: func(maas.Machine) string { return fmt.Sprintf("has the unwanted tag %q", tag) },
	}
}

// DiskBytes returns the size of the root disk in bytes. The root disk is the first disk, which MAAS also compares with
// a storage request. The size is zero if MAAS knows no disk of the machine.
func DiskBytes(m maas.Machine) int64 {
	if len(m.PhysicalBlockDevices) == 0 {
		return 0
	}
	return m.PhysicalBlockDevices[0].Size
}

func diskGB(m maas.Machine) int { return int(DiskBytes(m) / BytesPerGB) }

// Mismatches describes the requirements that a machine does not meet; empty if it matches.
func (r Request) Mismatches(m maas.Machine) []string {
	var lacks []string
	for _, c := range r.constraints() {
		if !c.suits(m) {
			lacks = append(lacks, c.lacks(m))
		}
	}
	return lacks
}

// Candidates returns the matching machines that are not set aside. They are sorted by preference of the zone, then by
// cost, as in MAAS.
func (r Request) Candidates(ready []maas.Machine, setAside func(systemID string) bool) []maas.Machine {
	var fit []maas.Machine
	for _, m := range ready {
		if len(r.Mismatches(m)) == 0 && !setAside(m.SystemID) && !m.Locked {
			fit = append(fit, m)
		}
	}
	slices.SortStableFunc(fit, func(a, b maas.Machine) int {
		return cmp.Or(cmp.Compare(slices.Index(r.Zones, a.Zone.Name), slices.Index(r.Zones, b.Zone.Name)), cmp.Compare(cost(a), cost(b)))
	})
	return fit
}

func cost(m maas.Machine) float64 { return float64(m.CPUCount) + float64(m.MemoryMiB)/1024 }

// Explain explains with counts why no machine is a candidate: "5 of 7 Ready machines are in zone "az1"; none of these
// has tag "gpu"".
func (r Request) Explain(ready []maas.Machine, setAside func(systemID string) bool) string {
	if len(ready) == 0 {
		return "MAAS has no Ready machine that the user of the API key may see"
	}
	left, said := ready, []string{}
	for _, c := range r.constraints() {
		next := slices.DeleteFunc(slices.Clone(left), func(m maas.Machine) bool { return !c.suits(m) })
		if len(next) < len(left) {
			said = append(said, step(len(next), len(left), c, len(said) == 0))
		}
		if left = next; len(left) == 0 {
			return strings.Join(said, "; ")
		}
	}
	free := slices.DeleteFunc(slices.Clone(left), func(m maas.Machine) bool { return setAside(m.SystemID) })
	if len(free) == 0 {
		said = append(said, fmt.Sprintf("all %d that fit are set aside for a while, since a deployment failed on them or another MaasMachine of the namespace still names them or has its static address there", len(left)))
	}
	return strings.Join(said, "; ")
}

func step(now, before int, c constraint, first bool) string {
	of := "of these"
	if first {
		of = fmt.Sprintf("of %s", condition.Count(before, "Ready machine"))
	}
	switch now {
	case 0:
		return fmt.Sprintf("none %s %s", of, c.one)
	case 1:
		return fmt.Sprintf("1 %s %s", of, c.one)
	}
	return fmt.Sprintf("%d %s %s", now, of, c.many)
}

// Filter returns a filter for the matching Ready machines, as far as MAAS supports the requirements.
func (r Request) Filter() maas.MachineFilter {
	filter := maas.MachineFilter{CPUCount: r.MinCPU, MemoryMiB: r.MinMemoryMiB, Tags: r.Tags, Zones: slices.Sorted(slices.Values(r.Zones))}
	if r.Pool != "" {
		filter.Pools = []string{r.Pool}
	}
	if r.Architecture != "" {
		filter.Architectures = []string{r.Architecture}
	}
	return filter
}

// Allocation converts the request to MAAS parameters, for a machine in the given zone; an empty zone means any.
func (r Request) Allocation(zone string) maas.AllocateRequest {
	request := maas.AllocateRequest{
		CPUCount:     r.MinCPU,
		MemoryMiB:    r.MinMemoryMiB,
		Zone:         zone,
		Pool:         r.Pool,
		Architecture: r.Architecture,
		Tags:         r.Tags,
		NotTags:      r.NotTags,
	}
	if r.MinDiskGB > 0 {
		request.Storage = fmt.Sprintf("root:%d", r.MinDiskGB)
	}
	return request
}

// HasNone reports whether MAAS has no matching machine, or does not know the zone, pool or tag.
func HasNone(err error) bool {
	for _, field := range []string{"zone", "pool", "tags", "not_tags", "arch"} {
		if maas.FieldMessages(err, field) != nil {
			return true
		}
	}
	return maas.IsConflict(err)
}
