// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/support/maas"
)

// State is what a machine of the site is good for, in one word. The words are part of the JSON output.
type State string

// The states of machines. Each machine has one.
const (
	// Fit means Ready and satisfying the constraints.
	Fit State = "fit"
	// Unfit means Ready, but a constraint excludes the machine.
	Unfit State = "unfit"
	// Taken means that a cluster or another user of MAAS has the machine.
	Taken State = "taken"
	// Quarantined means that deployments failed on the machine, so that the provider does not allocate it.
	Quarantined State = "quarantined"
	// Broken means that MAAS reports a fault of the machine.
	Broken State = "broken"
	// Other means that the machine is new, is being commissioned, tested or released, or is retired.
	Other State = "other"
)

// Report is what a site has. The JSON field names are stable.
type Report struct {
	// Endpoint is the URL of the MAAS.
	Endpoint string `json:"endpoint"`
	// Needs has an entry for each NodePool, or one for the constraints of the flags.
	Needs []Need `json:"needs"`
	// Places has the machines by zone, then by resource pool, then by tag.
	Places []Place `json:"places"`
	// Machines has all machines, by zone and name.
	Machines []Machine `json:"machines"`
}

// Need is how many machines are left for a NodePool, or for the constraints of the flags.
type Need struct {
	// NodePool is empty for the constraints of the flags.
	NodePool string `json:"nodePool,omitempty"`
	// Nodes is the number of nodes that the NodePool has, and that it is to have, such as "1/2".
	Nodes string `json:"nodes,omitempty"`
	// Fit is the number of machines that it can get now.
	Fit int `json:"fit"`
	// Reason explains the number.
	Reason string `json:"reason"`
}

// Place is a zone, a resource pool or a tag, with the number of its machines in each state.
type Place struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// States has no entry for states that no machine has.
	States map[State]int `json:"states"`
	// TakenBy has the number of machines by the cluster or user that has them.
	TakenBy map[string]int `json:"takenBy"`
}

// Machine is one machine of the site.
type Machine struct {
	Hostname string   `json:"hostname"`
	SystemID string   `json:"systemID"`
	Zone     string   `json:"zone"`
	Pool     string   `json:"pool"`
	Tags     []string `json:"tags"`
	// Status is MAAS's own word.
	Status string `json:"status"`
	State  State  `json:"state"`
	// TakenBy is the cluster or the user of MAAS that has the machine; empty if none has.
	TakenBy string `json:"takenBy,omitempty"`
}

// faults are the statuses of machines that need an administrator of MAAS.
var faults = []maas.Status{
	maas.StatusBroken, maas.StatusMissing, maas.StatusFailedCommissioning, maas.StatusFailedTesting,
	maas.StatusReleasingFailed, maas.StatusFailedDiskErasing,
}

// leaving are the statuses of machines on their way from an owner to the others.
var leaving = []maas.Status{maas.StatusReleasing, maas.StatusDiskErasing}

// NewReport counts machines for the demands of a site.
func NewReport(inventory *doctor.Inventory, site *Site) *Report {
	report := &Report{Endpoint: inventory.Endpoint, Needs: []Need{}, Places: []Place{}, Machines: []Machine{}}
	var ready []maas.Machine
	for i := range inventory.Machines {
		if inventory.Machines[i].Status == maas.StatusReady {
			ready = append(ready, inventory.Machines[i])
		}
	}
	fits := map[string]bool{}
	for _, demand := range site.Demands {
		need := Need{NodePool: demand.NodePool, Nodes: demand.Nodes}
		if demand.MAAS.Composed {
			need.Fit, need.Reason = demand.MAAS.Compose(inventory.Hosts)
		} else {
			var fit []maas.Machine
			fit, need.Reason = demand.MAAS.Fit(ready)
			need.Fit = len(fit)
			for j := range fit {
				fits[fit[j].SystemID] = true
			}
		}
		report.Needs = append(report.Needs, need)
	}
	for i := range inventory.Machines {
		report.Machines = append(report.Machines, site.machine(&inventory.Machines[i], fits))
	}
	slices.SortFunc(report.Machines, func(a, b Machine) int {
		return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.Hostname, b.Hostname),
			strings.Compare(a.SystemID, b.SystemID))
	})
	report.Places = places(report.Machines)
	return report
}

// machine classifies a machine.
func (s *Site) machine(m *maas.Machine, fits map[string]bool) Machine {
	found := Machine{
		Hostname: m.Hostname, SystemID: m.SystemID, Zone: m.Zone.Name, Pool: m.Pool.Name, Status: m.Status.String(),
		Tags: append([]string{}, slices.Sorted(slices.Values(m.TagNames))...),
	}
	owned := m.Owner != "" && !slices.Contains(leaving, m.Status)
	quarantined := slices.Contains(m.TagNames, doctor.QuarantineTag) || s.Quarantined[m.SystemID]
	switch {
	case slices.Contains(faults, m.Status) && (m.Status != maas.StatusFailedTesting || !owned):
		found.State = Broken
	case owned:
		found.State, found.TakenBy = Taken, s.owner(m)
	case quarantined:
		found.State = Quarantined
	case fits[m.SystemID]:
		found.State = Fit
	case m.Status == maas.StatusReady:
		found.State = Unfit
	default:
		found.State = Other
	}
	return found
}

// owner names the cluster that has a machine, or the user of MAAS.
func (s *Site) owner(m *maas.Machine) string {
	namespace := cmp.Or(m.Annotations[maas.AnnotationNamespace], m.OwnerData[maas.AnnotationNamespace])
	switch cluster := s.Clusters[namespace]; {
	case cluster != "":
		return cluster
	case namespace != "":
		return "namespace " + namespace
	}
	return "user " + m.Owner
}

// places counts machines by zone, by resource pool and by tag.
func places(machines []Machine) []Place {
	var all []Place
	for _, kind := range []struct {
		name string
		of   func(Machine) []string
	}{
		{"zone", func(m Machine) []string { return []string{m.Zone} }},
		{"pool", func(m Machine) []string { return []string{m.Pool} }},
		{"tag", func(m Machine) []string { return m.Tags }},
	} {
		found := map[string]*Place{}
		for _, m := range machines {
			for _, name := range kind.of(m) {
				place := found[name]
				if place == nil {
					place = &Place{Kind: kind.name, Name: name, States: map[State]int{}, TakenBy: map[string]int{}}
					found[name] = place
				}
				place.States[m.State]++
				if m.TakenBy != "" {
					place.TakenBy[m.TakenBy]++
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			all = append(all, *found[name])
		}
	}
	return all
}
