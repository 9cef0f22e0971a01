// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func machinesResource() resource {
	return resource{name: "machines", open: true, ops: ops{
		"GET":                  {read: listMachines},
		"GET list_allocated":   {read: listAllocated},
		"GET is_registered":    {read: isRegistered, anonymous: true},
		"GET power_parameters": {read: allPowerParameters},
		"POST":                 {write: createMachine, anonymous: true},
		"POST allocate":        {write: allocate},
		"POST accept":          {write: acceptMachines},
		"POST accept_all":      {write: acceptMachines},
		"POST release":         {write: releaseMachines},
		"POST set_zone":        {write: setZone},
	}}
}

func listMachines(c *call) (any, error) {
	set, err := constraints.Filter(c.DB, c.form)
	if err != nil {
		return nil, err
	}
	return c.visible(set.Fits)
}

func listAllocated(c *call) (any, error) {
	ids := c.form.All("id")
	return c.visible(func(m *inventory.Machine) bool {
		return m.Owner == c.user.Name && m.Status.In(status.Allocated, status.Deploying, status.Deployed) &&
			(len(ids) == 0 || slices.Contains(ids, m.SystemID))
	})
}

func isRegistered(c *call) (any, error) {
	mac := c.form.Get("mac_address")
	if !c.form.Has("mac_address") {
		return nil, problem.Text(400, "No provided mac_address!")
	}
	m := c.DB.Machines.Find(func(m *inventory.Machine) bool {
		return m.Status != status.Retired && slices.ContainsFunc(m.Interfaces, func(nic inventory.Interface) bool {
			return strings.EqualFold(nic.MAC, mac)
		})
	})
	return m != nil, nil
}

func allPowerParameters(c *call) (any, error) {
	if err := c.silentAdmin(); err != nil {
		return nil, err
	}
	ids := c.form.All("id")
	out := render.Object{}
	for _, m := range c.DB.Machines.All() {
		if len(ids) == 0 || slices.Contains(ids, m.SystemID) {
			out[m.SystemID] = powerParameters(m)
		}
	}
	return out, nil
}

// powerParameters returns the power parameters. It generates them if they are missing, because a seed should contain no
// secrets.
func powerParameters(m *inventory.Machine) map[string]any {
	if m.PowerParameters != nil {
		return m.PowerParameters
	}
	switch m.PowerType {
	case "", "manual":
		return map[string]any{}
	case "ipmi":
		return map[string]any{"power_driver": "LAN_2_0", "power_address": m.SystemID + ".bmc", "power_user": "maas", "power_pass": ""}
	case "lxd":
		return map[string]any{"power_address": "https://lxd", "instance_name": m.Hostname, "project": "default", "certificate": "", "key": ""}
	}
	return map[string]any{"power_address": m.SystemID + ".bmc", "power_user": "maas", "power_pass": ""}
}

var hostnamePattern = regexp.MustCompile(`^[a-z0-9A-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

func createMachine(c *call) (any, error) {
	f := problem.Fields{}
	m := &inventory.Machine{
		Architecture: c.form.Get("architecture"), Description: c.form.Get("description"), PowerType: c.form.Get("power_type"),
		ZoneID: 1, PowerState: "unknown", PowerParameters: formPowerParameters(c.form, f), Hostname: c.form.Get("hostname"),
		Status: status.New, Previous: status.New, Netboot: true, Extra: map[string]any{}, CPUCount: 0,
	}
	m.DomainID = c.DB.Domains.Find(func(d *inventory.Domain) bool { return d.Default }).ID
	checkArchitecture(c, m, f)
	checkHostname(c, m, m.Hostname, f)
	placeMachine(c, m, f)
	macs := c.form.All("mac_addresses")
	if len(macs) == 0 && !slices.Contains([]string{"ipmi", "lxd", "redfish"}, m.PowerType) {
		f.Add("mac_addresses", "This field is required.")
	}
	for _, mac := range macs {
		checkMAC(c, mac, f)
	}
	if err := f.Problem(); err != nil {
		return nil, err
	}
	m.ID, m.SystemID, m.Token = c.DB.Next("machines"), c.DB.NewSystemID(), c.DB.NewToken()
	if m.Hostname == "" {
		m.Hostname = c.DB.NewHostname()
	}
	for i, mac := range macs {
		nic := inventory.Interface{ID: c.DB.Next("interfaces"), Name: "eth" + string(rune('0'+i)), Type: "physical", MAC: strings.ToLower(mac), Enabled: true}
		if vlans := c.DB.VLANs.All(); len(vlans) > 0 {
			nic.VLANID = &vlans[0].ID
		}
		m.Interfaces = append(m.Interfaces, nic)
	}
	c.DB.Machines.Put(m)
	if err := enlist(c, m); err != nil {
		return nil, err
	}
	return c.print.Machine(m), nil
}

// enlist determines the status of a new machine. It commissions an administrator's machine whose power MAAS can
// control, unless the request says otherwise.
func enlist(c *call, m *inventory.Machine) error {
	if c.user == nil || !c.user.Superuser {
		return nil
	}
	if c.form.Bool("deployed") {
		m.Status, m.Owner, m.Commissioned = status.Deployed, c.user.Name, true
		return nil
	}
	commission := m.PowerType != "" && m.PowerType != "manual"
	if c.form.Has("commission") {
		commission = c.form.Bool("commission")
	}
	if !commission {
		return nil
	}
	return c.Life.Commission(m, c.user.Name, "")
}

func checkArchitecture(c *call, m *inventory.Machine, f problem.Fields) {
	if m.Architecture == "" {
		f.Add("architecture", "This field is required.")
		return
	}
	if !strings.Contains(m.Architecture, "/") {
		if sub := c.form.Get("subarchitecture"); sub != "" {
			m.Architecture += "/" + sub
		} else {
			m.Architecture += "/generic"
		}
	}
	var usable []string
	for _, r := range c.DB.BootResources.All() {
		arch, _, _ := strings.Cut(r.Architecture, "/")
		usable = append(usable, "'"+arch+"/generic'")
	}
	slices.Sort(usable)
	usable = slices.Compact(usable)
	if !slices.Contains(usable, "'"+m.Architecture+"'") {
		f.Add("architecture", "'%s' is not a valid architecture.  It should be one of: '', %s.", m.Architecture, strings.Join(usable, ", "))
	}
}

func checkHostname(c *call, m *inventory.Machine, name string, f problem.Fields) {
	if name == "" {
		return
	}
	host, domain, qualified := strings.Cut(name, ".")
	if qualified {
		if d := c.DB.DomainByName(domain); d != nil {
			m.DomainID = d.ID
		} else {
			f.Add("hostname", "Nonexistant domain.")
		}
	}
	m.Hostname = host
	if !hostnamePattern.MatchString(host) {
		f.Add("hostname", "Label contains disallowed characters: '%s'.", host)
		return
	}
	if c.DB.Machines.Find(func(o *inventory.Machine) bool { return o.Hostname == host && o.SystemID != m.SystemID }) != nil {
		f.Add("hostname", "Node with hostname '%s' already exists", host)
	}
}

func checkMAC(c *call, mac string, f problem.Fields) {
	if parsed, err := net.ParseMAC(mac); err != nil || len(parsed) != 6 {
		f.Add("mac_addresses", "One or more MAC addresses is invalid. ('%s' is not a valid MAC address.)", mac)
		return
	}
	taken := c.DB.Machines.Find(func(m *inventory.Machine) bool {
		return slices.ContainsFunc(m.Interfaces, func(nic inventory.Interface) bool { return strings.EqualFold(nic.MAC, mac) })
	})
	if taken != nil {
		f.Add("mac_addresses", "MAC address %s already in use on %s.", mac, taken.Hostname)
	}
}

// placeMachine parses domain, zone and pool, which are names.
func placeMachine(c *call, m *inventory.Machine, f problem.Fields) {
	const unknown = "Select a valid choice. That choice is not one of the available choices."
	if name := c.form.Get("domain"); name != "" {
		if d := c.DB.DomainByName(name); d != nil {
			m.DomainID = d.ID
		} else {
			f.Add("domain", "%s", unknown)
		}
	}
	if name := c.form.Get("zone"); name != "" {
		if z := c.DB.ZoneByName(name); z != nil {
			m.ZoneID = z.ID
		} else {
			f.Add("zone", "%s", unknown)
		}
	}
	if name := c.form.Get("pool"); name != "" {
		if p := c.DB.PoolByName(name); p != nil {
			m.PoolID = p.ID
		} else {
			f.Add("pool", "%s", unknown)
		}
	}
}

// formPowerParameters parses the power parameters, which are JSON or separate keys; nil if there are none.
func formPowerParameters(values form.Values, f problem.Fields) map[string]any {
	var out map[string]any
	if raw := values.Get("power_parameters"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &out); err != nil {
			f.Add("power_parameters", "Failed to parse JSON power_parameters")
		}
	}
	for _, key := range values.Keys() {
		name, ok := strings.CutPrefix(key, "power_parameters_")
		if !ok || name == "skip_check" {
			continue
		}
		if out == nil {
			out = map[string]any{}
		}
		out[name] = values.Get(key)
	}
	return out
}

func acceptMachines(c *call) (any, error) {
	ids := c.form.All("machines")
	out := []any{}
	for _, m := range c.DB.Machines.All() {
		if !slices.Contains(ids, m.SystemID) && (c.op == "accept" || m.Status != status.New) {
			continue
		}
		if !may(c.user, m, toAdmin) {
			return nil, problem.Text(403, "You don't have the required permission to accept the following machine(s): %s.", m.SystemID)
		}
		if m.Status != status.New {
			continue
		}
		edited := c.DB.Machines.Edit(m.SystemID)
		if err := c.Life.Commission(edited, c.user.Name, ""); err != nil {
			return nil, err
		}
		out = append(out, c.print.Machine(edited))
	}
	return out, nil
}

// releaseMachines releases several machines. If one cannot be released, it releases none.
func releaseMachines(c *call) (any, error) {
	ids := c.form.All("machines")
	var unknown, forbidden, stuck []string
	for _, id := range ids {
		m := c.DB.Machines.Get(id)
		switch {
		case m == nil:
			unknown = append(unknown, id)
		case !may(c.user, m, toEdit):
			forbidden = append(forbidden, id)
		default:
			if _, err := lifecycle.CanRelease(m); err != nil {
				stuck = append(stuck, id+" ('"+m.Status.String()+"')")
			}
		}
	}
	switch {
	case unknown != nil:
		return nil, problem.Text(400, "Unknown machine(s): %s.", strings.Join(unknown, ", "))
	case forbidden != nil:
		return nil, problem.Text(403, "You don't have the required permission to release the following machine(s): %s.", strings.Join(forbidden, ", "))
	case stuck != nil:
		return nil, problem.Conflict("Machine(s) cannot be released in their current state: %s.", strings.Join(stuck, ", "))
	}
	released := []string{}
	for _, id := range ids {
		if done, _ := lifecycle.CanRelease(c.DB.Machines.Get(id)); done {
			continue
		}
		released = append(released, id)
		if err := c.Life.Release(c.DB.Machines.Edit(id), c.user.Name, c.form.Get("comment"), false); err != nil {
			return nil, err
		}
	}
	return released, nil
}

func setZone(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	zone := c.DB.ZoneByName(c.form.Get("zone"))
	if zone == nil {
		return nil, problem.Field("zone", "Select a valid choice. That choice is not one of the available choices.")
	}
	for _, id := range c.form.All("nodes") {
		if c.DB.Machines.Get(id) != nil {
			c.DB.Machines.Edit(id).ZoneID = zone.ID
		}
	}
	return nil, nil
}
