// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// linkSubnet links the interface to a subnet.
func linkSubnet(c *call, m *inventory.Machine, nic *inventory.Interface) error {
	f := problem.Fields{}
	mode := strings.ToLower(c.form.Get("mode"))
	link := inventory.Link{Mode: mode, Since: c.Clock.Now()}
	if !slices.Contains([]string{"auto", "dhcp", "static", "link_up"}, mode) {
		f.Add("mode", "Select a valid choice. %s is not one of the available choices.", c.form.Get("mode"))
		return f.Problem()
	}
	if spec := c.form.Get("subnet"); spec != "" {
		s := constraints.SubnetBySpec(c.DB, spec)
		if s == nil {
			f.Add("subnet", "Select a valid choice. That choice is not one of the available choices.")
			return f.Problem()
		}
		link.SubnetID = &s.ID
		if nic.VLANID != nil && *nic.VLANID != s.VLANID {
			if !c.form.Bool("force") {
				f.Add("subnet", "Select a valid choice. That choice is not one of the available choices.")
				return f.Problem()
			}
			nic.Links, nic.VLANID = nil, &s.VLANID
		}
	} else if mode == "auto" || mode == "static" {
		f.Add("subnet", "This field is required.")
	}
	c.checkLink(m, nic, &link, f)
	if err := f.Problem(); err != nil {
		return err
	}
	if err := c.claim(&link); err != nil {
		return err
	}
	link.ID = c.DB.Next("links")
	if link.Gateway {
		c.dropGateways(m, *link.SubnetID)
	}
	nic.Links = append(slices.DeleteFunc(nic.Links, func(l inventory.Link) bool { return l.Mode == "link_up" }), link)
	return nil
}

func (c *call) checkLink(_ *inventory.Machine, nic *inventory.Interface, link *inventory.Link, f problem.Fields) {
	if c.form.Bool("force") {
		nic.Links = nil
	}
	for _, other := range nic.Links {
		if link.Mode == "dhcp" && other.Mode == "dhcp" {
			f.Add("mode", "Interface is already set to DHCP.")
		}
		if link.Mode == "link_up" && other.Mode != "link_up" {
			f.Add("mode", "Cannot configure interface to link up (with no IP address) while other links are already configured. Specify "+
				"force=True to override this behavior and unlink all other subnets.")
			return
		}
	}
	if link.Mode == "static" && link.SubnetID != nil {
		c.staticAddress(link, f)
	}
	if link.Gateway = c.form.Bool("default_gateway") && link.SubnetID != nil; link.Gateway && c.DB.Subnets.Get(*link.SubnetID).Gateway == "" {
		f.Add("default_gateway", "Cannot set as default gateway because subnet has no gateway IP.")
	}
}

// claim picks an address for a static link without one, or checks that the requested address is free. MAAS finds such
// errors only when it stores the link, so they are not errors of a field.
func (c *call) claim(link *inventory.Link) error {
	if link.Mode == "static" && link.IP == "" {
		ip, err := c.Life.PickIP(*link.SubnetID)
		link.IP = ip.String()
		return err
	}
	if link.IP != "" && c.held(link.IP) {
		return problem.Text(http.StatusNotFound, "IP address is already in use.")
	}
	return nil
}

func (c *call) staticAddress(link *inventory.Link, f problem.Fields) {
	given := c.form.Get("ip_address")
	if given == "" {
		return
	}
	s := c.DB.Subnets.Get(*link.SubnetID)
	addr, err := netip.ParseAddr(given)
	cidr, _ := netip.ParsePrefix(s.CIDR)
	switch {
	case err != nil:
		f.Add("ip_address", "Enter a valid IPv4 or IPv6 address.")
	case !cidr.Contains(addr):
		f.Add("ip_address", "IP address is not in the given subnet '%s'.", s.CIDR)
	default:
		if r := c.dynamicRange(addr); r != nil {
			f.Add("ip_address", "IP address is within the dynamic range %s to %s.", r.Start, r.End)
		}
	}
	link.IP = given
}

func unlinkSubnet(c *call, _ *inventory.Machine, nic *inventory.Interface) error {
	if !c.form.Has("id") {
		return problem.Field("id", "This field is required.")
	}
	at := slices.IndexFunc(nic.Links, func(l inventory.Link) bool { return isID(c.form.Get("id"), l.ID) })
	if at < 0 {
		return problem.Field("id", "Select a valid choice. That choice is not one of the available choices.")
	}
	nic.Links = slices.Delete(nic.Links, at, at+1)
	return nil
}

// setDefaultGateway makes the gateway of a linked subnet the machine's default gateway. It is the subnet of the given
// link, or else of the interface's first link with a gateway.
func setDefaultGateway(c *call, m *inventory.Machine, nic *inventory.Interface) error {
	for i := range nic.Links {
		link := &nic.Links[i]
		if link.SubnetID == nil || c.DB.Subnets.Get(*link.SubnetID).Gateway == "" || c.form.Has("link_id") && !isID(c.form.Get("link_id"), link.ID) {
			continue
		}
		c.dropGateways(m, *link.SubnetID)
		link.Gateway = true
		return nil
	}
	if c.form.Has("link_id") {
		return problem.Field("link_id", "Select a valid choice. That choice is not one of the available choices.")
	}
	return problem.Field("__all__", "No link of this interface has a gateway.")
}

// dropGateways clears the machine's default gateway of the address family of a subnet.
func (c *call) dropGateways(m *inventory.Machine, subnet int) {
	family := strings.Contains(c.DB.Subnets.Get(subnet).CIDR, ":")
	for i := range m.Interfaces {
		for j := range m.Interfaces[i].Links {
			link := &m.Interfaces[i].Links[j]
			if link.Gateway && strings.Contains(c.DB.Subnets.Get(*link.SubnetID).CIDR, ":") == family {
				link.Gateway = false
			}
		}
	}
}

func disconnect(_ *call, _ *inventory.Machine, nic *inventory.Interface) error {
	nic.Links, nic.VLANID = nil, nil
	return nil
}
