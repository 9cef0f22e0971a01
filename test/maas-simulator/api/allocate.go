// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// allocate allocates the cheapest Ready machine that satisfies the constraints. If there is none, a VM host may compose
// one.
func allocate(c *call) (any, error) {
	if err := checkSwitches(c, "dry_run", "verbose", "bridge_all", "bridge_stp"); err != nil {
		return nil, err
	}
	set, err := constraints.Acquire(c.DB, c.form)
	if err != nil {
		return nil, err
	}
	m := cheapest(c, set)
	if m == nil && set.SystemID == "" {
		m = c.composeFor(set)
	}
	if m == nil {
		return nil, noneAvailable(c.form, set)
	}
	dry := c.form.Bool("dry_run")
	if !dry {
		m = c.DB.Machines.Edit(m.SystemID)
		if err := c.Life.Acquire(m, c.user.Name, c.form.Get("agent_name"), c.form.Get("comment")); err != nil {
			return nil, err
		}
		if c.form.Bool("bridge_all") {
			bridgeAll(c, m)
		}
	}
	out := c.print.Machine(m)
	out["constraints_by_type"] = set.Matched(m, c.form.Bool("verbose"))
	return out, nil
}

func cheapest(c *call, set *constraints.Set) *inventory.Machine {
	var best *inventory.Machine
	for _, m := range c.DB.Machines.All() {
		if m.Status != status.Ready || !may(c.user, m, toEdit) || !set.Fits(m) {
			continue
		}
		if best == nil || constraints.Cost(m) < constraints.Cost(best) {
			best = m
		}
	}
	return best
}

func noneAvailable(values form.Values, set *constraints.Set) error {
	if set.SystemID != "" {
		return problem.Conflict("No machine with system ID %s available.", set.SystemID)
	}
	resolved := set.Resolved()
	if resolved == "" {
		return problem.Conflict("No machine available.")
	}
	return problem.Conflict("No available machine matches constraints: %s (resolved to \"%s\")", constraints.Asked(values), resolved)
}

// checkSwitches rejects invalid boolean values in versions up to 3.4. Later versions accept any text as true.
func checkSwitches(c *call, names ...string) error {
	if c.print.Version.AtLeast(3, 5) {
		return nil
	}
	for _, name := range names {
		if _, ok := form.ParseBool(c.form.Get(name)); !ok {
			return problem.Text(400, "Invalid %s: Value should be 'true' or 'false'", name)
		}
	}
	return nil
}

// isOn parses a boolean value by the rules of the version.
func (c *call) isOn(name string) bool {
	on, known := form.ParseBool(c.form.Get(name))
	return on || !known && c.print.Version.AtLeast(3, 5)
}

// bridgeAll adds a bridge to every interface with a link. The release removes the bridges.
func bridgeAll(c *call, m *inventory.Machine) {
	kind := c.form.Get("bridge_type")
	if kind == "" {
		kind = "standard"
	}
	for i := range slices.Clone(m.Interfaces) {
		nic := &m.Interfaces[i]
		if len(nic.Links) == 0 || nic.Type == "bridge" {
			continue
		}
		bridge := inventory.Interface{
			ID: c.DB.Next("interfaces"), Name: "br-" + nic.Name, Type: "bridge", MAC: nic.MAC, Enabled: true, VLANID: nic.VLANID,
			Parents: []string{nic.Name}, Links: nic.Links, Acquired: true,
			Params: map[string]any{"bridge_type": kind, "bridge_stp": c.form.Bool("bridge_stp"), "bridge_fd": 15},
		}
		nic.Links, nic.Children = nil, append(slices.Clone(nic.Children), bridge.Name)
		m.Interfaces = append(m.Interfaces, bridge)
	}
}
