// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func domainsResource() resource {
	return resource{name: "domains", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			out := []any{}
			for _, d := range c.DB.Domains.All() {
				out = append(out, c.print.Domain(d))
			}
			return out, nil
		}},
		"POST": {write: func(c *call) (any, error) {
			if err := c.admin(); err != nil {
				return nil, err
			}
			return c.saveDomain(&inventory.Domain{ID: -1, Authoritative: true}, true)
		}},
		"POST set_serial": {write: adminText("")},
	}}
}

func domainResource() resource {
	return resource{name: "domain", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			d := c.domain(c.path[0])
			if d == nil {
				return nil, problem.NotFound("Domain")
			}
			return c.print.Domain(d), nil
		}},
		"PUT": {write: func(c *call) (any, error) {
			d := c.domain(c.path[0])
			if d == nil {
				return nil, problem.NotFound("Domain")
			}
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			return c.saveDomain(c.DB.Domains.Edit(d.ID), false)
		}},
		"POST set_default": {write: setDefaultDomain},
		"DELETE":           {write: deleteDomain},
	}}
}

func (c *call) domain(id string) *inventory.Domain {
	if n, err := strconv.Atoi(id); err == nil {
		return c.DB.Domains.Get(n)
	}
	return c.DB.DomainByName(id)
}

func (c *call) saveDomain(d *inventory.Domain, creating bool) (any, error) {
	f := problem.Fields{}
	if name := c.form.Get("name"); creating || c.form.Has("name") {
		c.checkDomainName(d, name, f)
		d.Name = name
	}
	ttl, given := c.ttl("ttl", f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	if given {
		d.TTL = ttl
	}
	if c.form.Has("authoritative") {
		d.Authoritative = c.form.Bool("authoritative")
	}
	if creating {
		d.ID = c.DB.Next("domains")
		c.DB.Domains.Put(d)
	}
	return c.print.Domain(d), nil
}

func (c *call) checkDomainName(d *inventory.Domain, name string, f problem.Fields) {
	if name == "" {
		f.Add("name", "This field is required.")
		return
	}
	for _, label := range strings.Split(name, ".") {
		if !hostnamePattern.MatchString(label) {
			f.Add("name", "Domain name contains invalid characters.")
			f.Add("name", "Label contains disallowed characters: '%s'.", label)
			return
		}
	}
	if other := c.DB.DomainByName(name); other != nil && other.ID != d.ID {
		f.Add("name", "Domain with this Name already exists.")
	}
}

// ttl parses a TTL in seconds; nil if it is empty.
func (c *call) ttl(key string, f problem.Fields) (ttl *int, given bool) {
	raw := c.form.Get(key)
	if raw == "" {
		return nil, c.form.Has(key)
	}
	n, err := strconv.Atoi(raw)
	if err != nil {
		f.Add(key, "Enter a whole number.")
		return nil, false
	}
	switch {
	case n < 1:
		f.Add(key, "Ensure this value is greater than or equal to 1.")
		return nil, false
	case n > 604800:
		f.Add(key, "Ensure this value is less than or equal to 604800.")
		return nil, false
	}
	return &n, true
}

func setDefaultDomain(c *call) (any, error) {
	d := c.domain(c.path[0])
	if d == nil {
		return nil, problem.NotFound("Domain")
	}
	if err := c.silentAdmin(); err != nil {
		return nil, err
	}
	for _, other := range c.DB.Domains.All() {
		c.DB.Domains.Edit(other.ID).Default = other.ID == d.ID
	}
	return c.print.Domain(c.DB.Domains.Get(d.ID)), nil
}

// deleteDomain deletes a domain. It fails like MAAS if DNS resources or machines still use the domain.
func deleteDomain(c *call) (any, error) {
	d := c.domain(c.path[0])
	if d == nil {
		return nil, problem.NotFound("Domain")
	}
	if err := c.silentAdmin(); err != nil {
		return nil, err
	}
	if d.Default {
		return nil, problem.Text(400, "This domain is the default domain, it cannot be deleted.")
	}
	var names []string
	for _, r := range c.DB.DNSResources.All() {
		if r.DomainID == d.ID {
			names = append(names, "<DNSResource: name="+r.Name+">")
		}
	}
	if names != nil {
		return nil, problem.Text(500, "(\"Cannot delete some instances of model 'Domain' because they are referenced through protected "+
			"foreign keys: 'DNSResource.domain'.\", {%s})", strings.Join(names, ", "))
	}
	if m := c.DB.Machines.Find(func(m *inventory.Machine) bool { return m.DomainID == d.ID }); m != nil {
		return nil, problem.Text(500, "(\"Cannot delete some instances of model 'Domain' because they are referenced through protected "+
			"foreign keys: 'Node.domain'.\", {<Machine: %s (%s)>})", m.SystemID, c.DB.FQDN(m))
	}
	c.DB.Domains.Delete(d.ID)
	return noContent, nil
}
