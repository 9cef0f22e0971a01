// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func dnsResourcesResource() resource {
	return resource{name: "dnsresources", ops: ops{"GET": {read: listDNS}, "POST": {write: createDNS}}}
}

// dnsFilter parses the filters that DNS resources and DNS records share.
func (c *call) dnsFilter() (fits func(name string, domain int) bool, err error) {
	domain := (*inventory.Domain)(nil)
	if id := c.form.Get("domain"); id != "" {
		if domain = c.domain(id); domain == nil {
			return nil, problem.NotFound("Domain")
		}
	}
	name, fqdn := c.form.Get("name"), c.form.Get("fqdn")
	return func(n string, d int) bool {
		if domain != nil && domain.ID != d || name != "" && name != n {
			return false
		}
		return fqdn == "" || c.DB.Domains.Get(d) != nil && fqdn == n+"."+c.DB.Domains.Get(d).Name
	}, nil
}

func listDNS(c *call) (any, error) {
	fits, err := c.dnsFilter()
	if err != nil {
		return nil, err
	}
	kind := strings.ToUpper(c.form.Get("rrtype"))
	out := []any{}
	for _, r := range c.DB.DNSResources.All() {
		if fits(r.Name, r.DomainID) && (kind == "" || c.hasRecord(r, kind)) {
			out = append(out, c.print.DNSResource(r))
		}
	}
	if c.form.Bool("all") {
		out = append(out, c.implicitDNS(fits)...)
	}
	return out, nil
}

func (c *call) hasRecord(r *inventory.DNSResource, kind string) bool {
	for _, ip := range r.IPs {
		v6 := strings.Contains(ip, ":")
		if kind == "A" && !v6 || kind == "AAAA" && v6 {
			return true
		}
	}
	return c.DB.DNSRecords.Find(func(record *inventory.DNSRecord) bool {
		return record.DomainID == r.DomainID && record.Name == r.Name && record.Type == kind
	}) != nil
}

// implicitDNS renders the implicit DNS names of nodes.
func (c *call) implicitDNS(fits func(string, int) bool) []any {
	out := []any{}
	for _, m := range c.DB.Machines.All() {
		if ips := m.IPs(); len(ips) > 0 && fits(m.Hostname, m.DomainID) {
			out = append(out, c.print.Implicit(c.DB.FQDN(m), m.SystemID, 0, ips))
		}
	}
	for _, n := range c.DB.Nodes.All() {
		doc := c.print.Node(n)
		var ips []string
		for _, ip := range asList(doc["ip_addresses"]) {
			if s, ok := ip.(string); ok {
				ips = append(ips, s)
			}
		}
		fqdn, _ := doc["fqdn"].(string)
		name, domain := c.DB.SplitFQDN(fqdn)
		kind, _ := inventory.Number(doc["node_type"])
		if len(ips) > 0 && domain != nil && fits(name, domain.ID) {
			out = append(out, c.print.Implicit(fqdn, n.SystemID, kind, ips))
		}
	}
	return out
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// dnsName parses fqdn, or name and domain.
func (c *call) dnsName(f problem.Fields) (name string, domain *inventory.Domain, err error) {
	name, given := c.form.Get("name"), c.form.Get("domain")
	if fqdn := c.form.Get("fqdn"); fqdn != "" {
		name, domain = c.DB.SplitFQDN(fqdn)
		if domain == nil {
			return "", nil, problem.NotFound("Domain")
		}
		return name, domain, nil
	}
	if given == "" {
		f.Add("domain", "This field is required.")
	} else if domain = c.domain(given); domain == nil {
		return "", nil, problem.NotFound("Domain")
	}
	if name == "" {
		f.Add("name", "This field is required.")
	}
	return name, domain, nil
}

func createDNS(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	f := problem.Fields{}
	name, domain, err := c.dnsName(f)
	if err != nil {
		return nil, err
	}
	ips, err := c.dnsIPs()
	if err != nil {
		return nil, err
	}
	if err := c.addressable(name, ips, f); err != nil {
		return nil, err
	}
	ttl, _ := c.ttl("address_ttl", f)
	if len(f) == 0 && c.dnsByName(name, domain.ID, -1) != nil {
		f.Add("__all__", "Labels must be unique within their zone.")
	}
	if err := f.Problem(); err != nil {
		return nil, err
	}
	r := &inventory.DNSResource{ID: c.DB.Next("dnsresources"), Name: name, DomainID: domain.ID, TTL: ttl, IPs: ips}
	c.DB.DNSResources.Put(r)
	c.adopt(ips)
	return c.print.DNSResource(r), nil
}

// addressable returns the errors of MAAS for an invalid DNS name. With an fqdn, an invalid first label means that the
// domain is not found. A separate name is checked only if there are addresses.
func (c *call) addressable(name string, ips []string, f problem.Fields) error {
	switch {
	case name == "" || hostnamePattern.MatchString(name):
	case c.form.Get("fqdn") != "":
		return problem.NotFound("Domain")
	case len(ips) > 0:
		f.Add("__all__", "Invalid dnsresource name: %s.", name)
	}
	return nil
}

func (c *call) dnsByName(name string, domain, except int) *inventory.DNSResource {
	return c.DB.DNSResources.Find(func(r *inventory.DNSResource) bool {
		return r.Name == name && r.DomainID == domain && r.ID != except
	})
}

// dnsIPs parses addresses separated by spaces. An invalid address is an internal error in MAAS.
func (c *call) dnsIPs() ([]string, error) {
	ips := []string{}
	for _, word := range strings.Fields(c.form.Get("ip_addresses")) {
		ip, err := netip.ParseAddr(word)
		if err != nil {
			return nil, problem.Text(500, "failed to detect a valid IP address from '%s'", word)
		}
		if !slices.Contains(ips, ip.String()) {
			ips = append(ips, ip.String())
		}
	}
	return ips, nil
}

// adopt adds rows for addresses that are not in use yet.
func (c *call) adopt(ips []string) {
	for _, ip := range ips {
		if c.held(ip) {
			continue
		}
		now := c.Clock.Now()
		c.DB.Addresses.Put(&inventory.Address{
			ID: c.DB.Next("addresses"), IP: ip, Type: userReserved, SubnetID: c.subnetOf(ip), Owner: c.user.Name, Created: now, Updated: now,
		})
	}
}

// drop deletes the rows of addresses that no DNS resource uses any more.
func (c *call) drop(ips []string) {
	for _, ip := range ips {
		named := c.DB.DNSResources.Find(func(r *inventory.DNSResource) bool { return slices.Contains(r.IPs, ip) })
		if named != nil {
			continue
		}
		if a := c.DB.Addresses.Find(func(a *inventory.Address) bool { return a.IP == ip && a.Type == userReserved }); a != nil {
			c.DB.Addresses.Delete(a.ID)
		}
	}
}

func dnsResourceResource() resource {
	return resource{name: "dnsresource", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			r := c.dnsResource()
			if r == nil {
				return nil, problem.NotFound("DNSResource")
			}
			return c.print.DNSResource(r), nil
		}},
		"PUT": {write: updateDNS},
		"DELETE": {write: func(c *call) (any, error) {
			r := c.dnsResource()
			if r == nil {
				return nil, problem.NotFound("DNSResource")
			}
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			c.DB.DNSResources.Delete(r.ID)
			c.drop(r.IPs)
			for _, record := range c.recordsOf(r.Name, r.DomainID) {
				c.DB.DNSRecords.Delete(record.ID)
			}
			return noContent, nil
		}},
	}}
}

func (c *call) dnsResource() *inventory.DNSResource {
	id, err := strconv.Atoi(c.path[0])
	if err != nil {
		return nil
	}
	return c.DB.DNSResources.Get(id)
}

func updateDNS(c *call) (any, error) {
	old := c.dnsResource()
	if old == nil {
		return nil, problem.NotFound("DNSResource")
	}
	if err := c.silentAdmin(); err != nil {
		return nil, err
	}
	r := c.DB.DNSResources.Edit(old.ID)
	f := problem.Fields{}
	if name := c.form.Get("name"); name != "" {
		c.rename(r, name, f)
	}
	if ttl, given := c.ttl("address_ttl", f); given {
		r.TTL = ttl
	}
	if c.form.Has("ip_addresses") {
		ips, err := c.dnsIPs()
		if err != nil {
			return nil, err
		}
		before := r.IPs
		r.IPs = ips
		c.adopt(ips)
		c.drop(before)
	}
	if err := f.Problem(); err != nil {
		return nil, err
	}
	return c.print.DNSResource(r), nil
}

// rename changes the name of a DNS resource and of its records.
func (c *call) rename(r *inventory.DNSResource, name string, f problem.Fields) {
	if c.dnsByName(name, r.DomainID, r.ID) != nil {
		f.Add("__all__", "Labels must be unique within their zone.")
	}
	for _, record := range c.recordsOf(r.Name, r.DomainID) {
		c.DB.DNSRecords.Edit(record.ID).Name = name
	}
	r.Name = name
}
