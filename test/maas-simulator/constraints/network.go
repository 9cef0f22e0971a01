// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// touches returns a function that reports whether "of" is true for a VLAN or subnet of an interface.
func touches(c *context, of func(v *inventory.VLAN, s *inventory.Subnet) bool) func(*inventory.Interface) bool {
	db := c.db
	return func(nic *inventory.Interface) bool {
		if nic.VLANID != nil {
			if v := db.VLANs.Get(*nic.VLANID); v != nil && of(v, nil) {
				return true
			}
		}
		return slices.ContainsFunc(nic.Links, func(link inventory.Link) bool {
			if link.SubnetID == nil {
				return false
			}
			s := db.Subnets.Get(*link.SubnetID)
			return s != nil && of(db.VLANs.Get(s.VLANID), s)
		})
	}
}

func anyInterface(fits func(*inventory.Interface) bool) func(*inventory.Machine) bool {
	return func(m *inventory.Machine) bool {
		for i := range m.Interfaces {
			if fits(&m.Interfaces[i]) {
				return true
			}
		}
		return false
	}
}

// matcher resolves a specifier to a function that matches VLANs and subnets. It returns nil if the specifier names
// nothing, or if it has set an error in the context.
type matcher func(c *context, spec string) func(*inventory.VLAN, *inventory.Subnet) bool

// nothing matches no VLAN and no subnet.
func nothing(*inventory.VLAN, *inventory.Subnet) bool { return false }

// specified returns a parser for a list of specifiers. The rule matches machines with an interface on any of the
// specified networks. The parser rejects a list that names no network.
func specified(plural string, find matcher) parser {
	return func(c *context, values []string) (string, func(*inventory.Machine) bool) {
		var of []func(*inventory.VLAN, *inventory.Subnet) bool
		for _, v := range values {
			if match := find(c, v); match != nil {
				of = append(of, match)
			}
		}
		if c.err != nil {
			return "", nil
		}
		if of == nil {
			return c.refuse("No matching %s found.", plural)
		}
		return strings.Join(values, ","), anyInterface(touches(c, func(v *inventory.VLAN, s *inventory.Subnet) bool {
			return slices.ContainsFunc(of, func(match func(*inventory.VLAN, *inventory.Subnet) bool) bool { return match(v, s) })
		}))
	}
}

var (
	fabrics       = specified("fabrics", fabricSpec)
	fabricClasses = specified("fabric classes", fabricClassSpec)
	vlans         = specified("VLANs", vlanSpec)
	subnets       = specified("subnets", subnetSpec)
)

// within resolves a nested specifier, such as x in space:x. It sets an error if the specifier names nothing.
func within(c *context, model string, find matcher, spec string) func(*inventory.VLAN, *inventory.Subnet) bool {
	match := find(c, spec)
	if match == nil {
		c.err = problem.NotFound(model)
	}
	return match
}

func fabricSpec(c *context, spec string) func(*inventory.VLAN, *inventory.Subnet) bool {
	spec = strings.TrimPrefix(strings.TrimPrefix(spec, "fabric:"), "name:")
	id, err := strconv.Atoi(strings.TrimPrefix(spec, "id:"))
	f := c.db.Fabrics.Find(func(f *inventory.Fabric) bool { return f.Name == spec || err == nil && f.ID == id })
	if f == nil {
		return nil
	}
	return func(v *inventory.VLAN, _ *inventory.Subnet) bool { return v != nil && v.FabricID == f.ID }
}

func fabricClassSpec(c *context, spec string) func(*inventory.VLAN, *inventory.Subnet) bool {
	db := c.db
	return func(v *inventory.VLAN, _ *inventory.Subnet) bool {
		if v == nil {
			return false
		}
		f := db.Fabrics.Get(v.FabricID)
		return f != nil && f.ClassType != nil && *f.ClassType == spec
	}
}

func vlanSpec(c *context, spec string) func(*inventory.VLAN, *inventory.Subnet) bool {
	kind, value, qualified := strings.Cut(spec, ":")
	switch {
	case !qualified:
		kind, value = "", spec
	case kind == "space":
		return within(c, "Space", spaceSpec, value)
	case kind == "fabric":
		return within(c, "Fabric", fabricSpec, value)
	}
	n, err := strconv.Atoi(value)
	match := func(v *inventory.VLAN) bool {
		switch kind {
		case "vid":
			return err == nil && v.VID == n
		case "id":
			return err == nil && v.ID == n
		case "name":
			return v.Name == value
		}
		return err == nil && v.ID == n || v.Name == value
	}
	if c.db.VLANs.Find(match) == nil {
		return nil
	}
	return func(v *inventory.VLAN, _ *inventory.Subnet) bool { return v != nil && match(v) }
}

func spaceSpec(c *context, name string) func(*inventory.VLAN, *inventory.Subnet) bool {
	id, err := strconv.Atoi(name)
	space := c.db.Spaces.Find(func(s *inventory.Space) bool { return s.Name == name || err == nil && s.ID == id })
	if space == nil {
		return nil
	}
	return func(v *inventory.VLAN, _ *inventory.Subnet) bool {
		return v != nil && v.SpaceID != nil && *v.SpaceID == space.ID
	}
}

func subnetSpec(c *context, spec string) func(*inventory.VLAN, *inventory.Subnet) bool {
	kind, value, qualified := strings.Cut(spec, ":")
	if qualified {
		switch kind {
		case "space":
			return within(c, "Space", spaceSpec, value)
		case "fabric":
			return within(c, "Fabric", fabricSpec, value)
		case "vlan":
			return within(c, "VLAN", vlanSpec, value)
		case "vid":
			return vlanSpec(c, spec)
		}
	}
	s := SubnetBySpec(c.db, spec)
	if s == nil {
		return nil
	}
	return func(_ *inventory.VLAN, other *inventory.Subnet) bool { return other != nil && other.ID == s.ID }
}

// SubnetBySpec returns the subnet with the ID, CIDR or name. The specifier may have its kind and a colon before it. It
// returns nil if there is none.
func SubnetBySpec(db *inventory.DB, spec string) *inventory.Subnet {
	kind, value, qualified := strings.Cut(spec, ":")
	if !qualified || strings.Contains(value, ":") && kind != "cidr" && kind != "ip" {
		kind, value = "", spec
	}
	n, err := strconv.Atoi(value)
	return db.Subnets.Find(func(s *inventory.Subnet) bool {
		switch kind {
		case "id":
			return err == nil && s.ID == n
		case "cidr":
			return s.CIDR == value
		case "name":
			return s.Name == value
		case "ip":
			return holds(s.CIDR, value)
		case "":
			return err == nil && s.ID == n || s.CIDR == value || s.Name == value
		}
		return false
	})
}

// holds reports whether a network contains an address; false if one of them is invalid.
func holds(network, address string) bool {
	cidr, err := netip.ParsePrefix(network)
	ip, ipErr := netip.ParseAddr(address)
	return err == nil && ipErr == nil && cidr.Contains(ip)
}
