// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func isID(text string, id int) bool { return text == strconv.Itoa(id) }

func interfacesResource() resource {
	return resource{name: "interfaces", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			m, err := c.machine(toView)
			if err != nil {
				return nil, err
			}
			return c.print.Machine(m)["interface_set"], nil
		}},
		"POST create_physical": {write: createInterface("physical")},
		"POST create_bridge":   {write: createInterface("bridge")},
		"POST create_bond":     {write: createInterface("bond")},
		"POST create_vlan":     {write: createInterface("vlan")},
	}}
}

func interfaceResource() resource {
	return resource{name: "interface", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			m, err := c.machine(toView)
			if err != nil {
				return nil, err
			}
			at := c.interfaceAt(m)
			if at < 0 {
				return nil, problem.NotFound("Interface")
			}
			return c.print.Interface(m, &m.Interfaces[at]), nil
		}},
		"PUT":                      {write: onInterface("update", updateInterface)},
		"DELETE":                   {write: deleteInterface},
		"POST link_subnet":         {write: onInterface("link", linkSubnet)},
		"POST unlink_subnet":       {write: onInterface("unlink", unlinkSubnet)},
		"POST disconnect":          {write: onInterface("disconnect", disconnect)},
		"POST set_default_gateway": {write: onInterface("set default gateway on", setDefaultGateway)},
		"POST add_tag": {write: onInterface("tag", func(c *call, _ *inventory.Machine, nic *inventory.Interface) error {
			if tag := c.form.Get("tag"); tag != "" && !slices.Contains(nic.Tags, tag) {
				nic.Tags = append(nic.Tags, tag)
			}
			return nil
		})},
		"POST remove_tag": {write: onInterface("untag", func(c *call, _ *inventory.Machine, nic *inventory.Interface) error {
			nic.Tags = slices.DeleteFunc(nic.Tags, func(t string) bool { return t == c.form.Get("tag") })
			return nil
		})},
	}}
}

func (c *call) interfaceAt(m *inventory.Machine) int {
	return slices.IndexFunc(m.Interfaces, func(nic inventory.Interface) bool { return isID(c.path[1], nic.ID) || nic.Name == c.path[1] })
}

// configurable returns the machine in the path if its network may be changed.
func (c *call) configurable(verb string) (*inventory.Machine, error) {
	m, err := c.edit(toAdmin)
	if err != nil {
		return nil, err
	}
	if !m.Status.NetworkConfigurable() {
		return nil, problem.Conflict("Cannot %s interface because the machine is not New, Ready, Allocated, or Broken.", verb)
	}
	return m, nil
}

// onInterface returns an operation on the interface in the path.
func onInterface(verb string, do func(*call, *inventory.Machine, *inventory.Interface) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		m, err := c.configurable(verb)
		if err != nil {
			return nil, err
		}
		at := c.interfaceAt(m)
		if at < 0 {
			return nil, problem.NotFound("Interface")
		}
		if err := do(c, m, &m.Interfaces[at]); err != nil {
			return nil, err
		}
		return c.print.Interface(m, &m.Interfaces[at]), nil
	}
}

func createInterface(kind string) func(*call) (any, error) {
	return func(c *call) (any, error) {
		m, err := c.configurable("create")
		if err != nil {
			return nil, err
		}
		f := problem.Fields{}
		nic := inventory.Interface{Name: c.form.Get("name"), Type: kind, MAC: strings.ToLower(c.form.Get("mac_address")), Enabled: true, Tags: c.form.All("tags")}
		parents := c.parents(m, kind, &nic, f)
		c.interfaceVLAN(&nic, f)
		if nic.Name == "" && kind == "vlan" && len(parents) == 1 && nic.VLANID != nil {
			nic.Name = parents[0].Name + "." + strconv.Itoa(c.DB.VLANs.Get(*nic.VLANID).VID)
		}
		checkInterface(m, &nic, kind, f)
		if err := f.Problem(); err != nil {
			return nil, err
		}
		nic.ID = c.DB.Next("interfaces")
		nic.Acquired = kind == "bridge" && m.Owner != ""
		for _, parent := range parents {
			parent.Children = append(slices.Clone(parent.Children), nic.Name)
			if kind != "vlan" {
				nic.Links, parent.Links = append(nic.Links, parent.Links...), nil
			}
		}
		m.Interfaces = append(m.Interfaces, nic)
		return c.print.Interface(m, &nic), nil
	}
}

func checkInterface(m *inventory.Machine, nic *inventory.Interface, kind string, f problem.Fields) {
	if nic.Name == "" {
		f.Add("name", "This field is required.")
	} else if slices.ContainsFunc(m.Interfaces, func(o inventory.Interface) bool { return o.Name == nic.Name }) {
		f.Add("name", "Node %s already has an interface named '%s'.", m.Hostname, nic.Name)
	}
	if kind == "physical" {
		if mac, err := net.ParseMAC(nic.MAC); nic.MAC == "" {
			f.Add("mac_address", "This field is required.")
		} else if err != nil || len(mac) != 6 {
			f.Add("mac_address", "'%s' is not a valid MAC address.", nic.MAC)
		}
	}
}

// parents returns the parent interfaces of a new interface.
func (c *call) parents(m *inventory.Machine, kind string, nic *inventory.Interface, f problem.Fields) []*inventory.Interface {
	if kind == "physical" {
		return nil
	}
	field := "parent"
	if kind == "bond" {
		field = "parents"
	}
	var out []*inventory.Interface
	for _, id := range append(c.form.All("parent"), c.form.All("parents")...) {
		at := slices.IndexFunc(m.Interfaces, func(o inventory.Interface) bool { return isID(id, o.ID) })
		if at < 0 {
			f.Add(field, "Select a valid choice. %s is not one of the available choices.", id)
			continue
		}
		parent := &m.Interfaces[at]
		out = append(out, parent)
		nic.Parents = append(nic.Parents, parent.Name)
		if nic.MAC == "" {
			nic.MAC = parent.MAC
		}
		if kind != "vlan" {
			nic.VLANID = parent.VLANID
		}
	}
	if len(out) == 0 {
		f.Add(field, "A %s interface must have at least one parent.", kind)
	}
	if kind == "bridge" {
		bridgeType := c.form.Get("bridge_type")
		if bridgeType == "" {
			bridgeType = "standard"
		}
		nic.Params = map[string]any{"bridge_type": bridgeType, "bridge_stp": c.form.Bool("bridge_stp"), "bridge_fd": 15}
	}
	return out
}

func (c *call) interfaceVLAN(nic *inventory.Interface, f problem.Fields) {
	raw := c.form.Get("vlan")
	if raw == "" {
		return
	}
	id, err := strconv.Atoi(raw)
	if err != nil || c.DB.VLANs.Get(id) == nil {
		f.Add("vlan", "Select a valid choice. That choice is not one of the available choices.")
		return
	}
	nic.VLANID = &id
}

func updateInterface(c *call, _ *inventory.Machine, nic *inventory.Interface) error {
	f := problem.Fields{}
	if name := c.form.Get("name"); name != "" {
		nic.Name = name
	}
	if mac := c.form.Get("mac_address"); mac != "" {
		if parsed, err := net.ParseMAC(mac); err != nil || len(parsed) != 6 {
			f.Add("mac_address", "'%s' is not a valid MAC address.", mac)
		}
		nic.MAC = strings.ToLower(mac)
	}
	if c.form.Has("enabled") {
		nic.Enabled = c.form.Bool("enabled")
	}
	if c.form.Has("tags") {
		nic.Tags = c.form.All("tags")
	}
	c.interfaceVLAN(nic, f)
	return f.Problem()
}

func deleteInterface(c *call) (any, error) {
	m, err := c.configurable("delete")
	if err != nil {
		return nil, err
	}
	at := c.interfaceAt(m)
	if at < 0 {
		return nil, problem.NotFound("Interface")
	}
	gone := m.Interfaces[at]
	for i := range m.Interfaces {
		m.Interfaces[i].Children = slices.DeleteFunc(slices.Clone(m.Interfaces[i].Children), func(n string) bool { return n == gone.Name })
	}
	m.Interfaces = slices.Delete(m.Interfaces, at, at+1)
	return noContent, nil
}
