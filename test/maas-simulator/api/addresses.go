// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// userReserved is the allocation type of addresses that users reserve.
const userReserved = 4

func addressesResource() resource {
	return resource{name: "ipaddresses", ops: ops{
		"GET":          {read: listAddresses},
		"POST reserve": {write: reserveAddress},
		"POST release": {write: releaseAddress},
	}}
}

func listAddresses(c *call) (any, error) {
	all, owner, ip := c.form.Bool("all"), c.form.Get("owner"), c.form.Get("ip")
	if (all || owner != "") && !c.user.Superuser {
		return nil, problem.Text(403, "Listing all IP addresses requires admin privileges.")
	}
	if owner == "" {
		owner = c.user.Name
	}
	out := []any{}
	for _, a := range c.DB.Addresses.All() {
		if (all || a.Owner == owner) && (ip == "" || a.IP == ip) {
			out = append(out, c.print.Address(a))
		}
	}
	if !all {
		return out, nil
	}
	for h := range c.DB.Holdings() {
		if ip == "" || h.Link.IP == ip {
			out = append(out, c.print.Held(h))
		}
	}
	return out, nil
}

// held reports whether the address is in use.
func (c *call) held(ip string) bool {
	if c.DB.Addresses.Find(func(a *inventory.Address) bool { return a.IP == ip }) != nil {
		return true
	}
	return c.DB.Machines.Find(func(m *inventory.Machine) bool { return slices.Contains(m.IPs(), ip) }) != nil
}

// subnetOf returns the ID of the subnet that contains an address; nil if there is none.
func (c *call) subnetOf(ip string) *int {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil
	}
	s := c.DB.Subnets.Find(func(s *inventory.Subnet) bool {
		cidr, err := netip.ParsePrefix(s.CIDR)
		return err == nil && cidr.Contains(addr)
	})
	if s == nil {
		return nil
	}
	return &s.ID
}

func reserveAddress(c *call) (any, error) {
	given := c.form.Get("ip")
	if given == "" {
		given = c.form.Get("ip_address")
	}
	var subnet *inventory.Subnet
	if spec := c.form.Get("subnet"); spec != "" {
		if subnet = constraints.SubnetBySpec(c.DB, spec); subnet == nil {
			return nil, problem.Text(400, "Unable to identify subnet: %s.", spec)
		}
	}
	if given == "" && subnet == nil {
		return nil, problem.Text(400, "Must supply either the 'subnet' or the 'ip'.")
	}
	ip, id, err := c.reservable(given, subnet)
	if err != nil {
		return nil, err
	}
	now := c.Clock.Now()
	a := &inventory.Address{ID: c.DB.Next("addresses"), IP: ip, Type: userReserved, SubnetID: id, Owner: c.user.Name, Created: now, Updated: now}
	c.DB.Addresses.Put(a)
	if err := c.nameAddress(ip); err != nil {
		return nil, err
	}
	return c.print.Address(a), nil
}

// reservable checks the requested address, or picks one if there is none.
func (c *call) reservable(given string, subnet *inventory.Subnet) (ip string, id *int, err error) {
	if given == "" {
		picked, err := c.Life.PickIP(subnet.ID)
		return picked.String(), &subnet.ID, err
	}
	addr, parseErr := netip.ParseAddr(given)
	if parseErr != nil {
		return "", nil, problem.Field("ip_address", "Enter a valid IPv4 or IPv6 address.")
	}
	id = c.subnetOf(given)
	if id == nil || subnet != nil && *id != subnet.ID {
		return "", nil, problem.Text(400, "No known subnet for IP %s.", given)
	}
	if c.dynamicRange(addr) != nil && !c.form.Has("mac") {
		return "", nil, problem.Text(403, "IP address %s belongs to an existing dynamic range. To reserve this IP address, a MAC "+
			"address is required. (Create a device instead.)", given)
	}
	if c.held(given) {
		return "", nil, problem.Text(404, "The IP address %s is already in use.", given)
	}
	return given, id, nil
}

// dynamicRange returns the dynamic range that contains an address; nil if there is none.
func (c *call) dynamicRange(addr netip.Addr) *inventory.Range {
	return c.DB.Ranges.Find(func(r *inventory.Range) bool {
		start, err1 := netip.ParseAddr(r.Start)
		end, err2 := netip.ParseAddr(r.End)
		return err1 == nil && err2 == nil && r.Type == "dynamic" && !addr.Less(start) && !end.Less(addr)
	})
}

// nameAddress adds the address to the requested DNS name.
func (c *call) nameAddress(ip string) error {
	hostname := c.form.Get("hostname")
	if hostname == "" {
		return nil
	}
	domain := c.DB.Domains.Find(func(d *inventory.Domain) bool { return d.Default })
	if given := c.form.Get("domain"); given != "" {
		domain = c.domain(given)
	} else if strings.Contains(hostname, ".") {
		hostname, domain = c.DB.SplitFQDN(hostname)
	}
	if domain == nil {
		return problem.NotFound("Domain")
	}
	if r := c.dnsByName(hostname, domain.ID, -1); r != nil {
		r = c.DB.DNSResources.Edit(r.ID)
		r.IPs = append(slices.Clone(r.IPs), ip)
		return nil
	}
	c.DB.DNSResources.Put(&inventory.DNSResource{ID: c.DB.Next("dnsresources"), Name: hostname, DomainID: domain.ID, IPs: []string{ip}})
	return nil
}

func releaseAddress(c *call) (any, error) {
	ip, force := c.form.Get("ip"), c.form.Bool("force")
	if ip == "" {
		return nil, problem.Text(400, "No provided ip!")
	}
	if force && !c.user.Superuser {
		return nil, problem.Text(403, "Force-releasing an IP address requires admin privileges.")
	}
	a := c.DB.Addresses.Find(func(a *inventory.Address) bool {
		return a.IP == ip && (force || a.Owner == c.user.Name && a.Type == userReserved)
	})
	if a == nil {
		message := "IP address %s does not exist, is not the correct type of address, or does not belong to the requesting user."
		if c.user.Superuser && !force {
			message += "\nIf you are sure you want to release this address, use force=true as a MAAS administrator."
		}
		return nil, problem.Text(400, message, ip)
	}
	c.DB.Addresses.Delete(a.ID)
	c.unname(ip)
	return noContent, nil
}

// unname removes an address from DNS. A name whose last address is removed is deleted.
func (c *call) unname(ip string) {
	for _, r := range c.DB.DNSResources.All() {
		if !slices.Contains(r.IPs, ip) {
			continue
		}
		edited := c.DB.DNSResources.Edit(r.ID)
		edited.IPs = slices.DeleteFunc(slices.Clone(r.IPs), func(other string) bool { return other == ip })
		if len(edited.IPs) == 0 {
			c.DB.DNSResources.Delete(r.ID)
		}
	}
}
