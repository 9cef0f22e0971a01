// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

func versionResource() resource {
	return resource{name: "version", open: true, public: true, ops: ops{"GET": {read: readVersion, anonymous: true}}}
}

var capabilities = []string{
	"networks-management", "static-ipaddresses", "ipv6-deployment-ubuntu", "devices-management", "storage-deployment-ubuntu",
	"network-deployment-ubuntu", "bridging-interface-ubuntu", "bridging-automatic-ubuntu", "authenticate-api",
}

func readVersion(c *call) (any, error) {
	return render.Object{"version": c.print.Version.Text, "subversion": "", "capabilities": capabilities}, nil
}

// namePattern matches the valid names of zones and pools.
var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9 _-]*$`)

var zonePattern = regexp.MustCompile(`^[\w-]+$`)

// checkName validates a new or changed name.
func checkName(c *call, creating bool, pattern *regexp.Regexp, what string, taken func(string) bool, f problem.Fields) (string, bool) {
	if !creating && !c.form.Has("name") {
		return "", false
	}
	name := c.form.Get("name")
	switch {
	case name == "":
		f.Add("name", "This field is required.")
	case !pattern.MatchString(name):
		f.Add("name", "Enter a valid value.")
	case taken(name):
		f.Add("name", "%s with this Name already exists.", what)
	}
	return name, true
}

func zonesResource() resource {
	return resource{name: "zones", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			out := []any{}
			for _, z := range c.DB.Zones.All() {
				out = append(out, c.print.Zone(z))
			}
			return out, nil
		}},
		"POST": {write: func(c *call) (any, error) {
			if err := c.admin(); err != nil {
				return nil, err
			}
			return c.saveZone(&inventory.Zone{}, true)
		}},
	}}
}

func zoneResource() resource {
	return resource{name: "zone", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			z := c.DB.ZoneByName(c.path[0])
			if z == nil {
				return nil, problem.NotFound("Zone")
			}
			return c.print.Zone(z), nil
		}},
		"PUT": {write: func(c *call) (any, error) {
			if err := c.admin(); err != nil {
				return nil, err
			}
			z := c.DB.ZoneByName(c.path[0])
			if z == nil {
				return nil, problem.NotFound("Zone")
			}
			return c.saveZone(c.DB.Zones.Edit(z.ID), false)
		}},
		"DELETE": {write: deleteZone},
	}}
}

func (c *call) saveZone(z *inventory.Zone, creating bool) (any, error) {
	f := problem.Fields{}
	name, given := checkName(c, creating, zonePattern, "Physical zone", func(name string) bool {
		other := c.DB.ZoneByName(name)
		return other != nil && other.ID != z.ID
	}, f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	if given {
		z.Name = name
	}
	if c.form.Has("description") {
		z.Description = c.form.Get("description")
	}
	if creating {
		z.ID = c.DB.Next("zones")
		c.DB.Zones.Put(z)
	}
	return c.print.Zone(z), nil
}

func deleteZone(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	z := c.DB.ZoneByName(c.path[0])
	if z == nil {
		return noContent, nil
	}
	if z.ID == 1 {
		return nil, problem.Text(400, "This zone is the default zone, it cannot be deleted.")
	}
	for _, m := range c.DB.Machines.All() {
		if m.ZoneID == z.ID {
			c.DB.Machines.Edit(m.SystemID).ZoneID = 1
		}
	}
	for _, h := range c.DB.VMHosts.All() {
		if h.ZoneID == z.ID {
			c.DB.VMHosts.Edit(h.ID).ZoneID = 1
		}
	}
	c.DB.Zones.Delete(z.ID)
	return noContent, nil
}

func poolsResource() resource {
	return resource{name: "resourcepools", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			out := []any{}
			for _, p := range c.DB.Pools.All() {
				out = append(out, c.print.Pool(p))
			}
			return out, nil
		}},
		"POST": {write: func(c *call) (any, error) {
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			return c.savePool(&inventory.Pool{ID: -1}, true)
		}},
	}}
}

func poolResource() resource {
	return resource{name: "resourcepool", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			p := c.pool(c.path[0])
			if p == nil {
				return nil, problem.NotFound("ResourcePool")
			}
			return c.print.Pool(p), nil
		}},
		"PUT": {write: func(c *call) (any, error) {
			p := c.pool(c.path[0])
			if p == nil {
				return nil, problem.NotFound("ResourcePool")
			}
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			return c.savePool(c.DB.Pools.Edit(p.ID), false)
		}},
		"DELETE": {write: deletePool},
	}}
}

// pool returns the pool with the ID or the name.
func (c *call) pool(id string) *inventory.Pool {
	if n, err := strconv.Atoi(id); err == nil {
		return c.DB.Pools.Get(n)
	}
	return c.DB.PoolByName(id)
}

func (c *call) savePool(p *inventory.Pool, creating bool) (any, error) {
	f := problem.Fields{}
	name, given := checkName(c, creating, namePattern, "Resource pool", func(name string) bool {
		other := c.DB.PoolByName(name)
		return other != nil && other.ID != p.ID
	}, f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	if given {
		p.Name = name
	}
	if c.form.Has("description") {
		p.Description = c.form.Get("description")
	}
	if creating {
		p.ID = c.DB.Next("pools")
		c.DB.Pools.Put(p)
	}
	return c.print.Pool(p), nil
}

func deletePool(c *call) (any, error) {
	p := c.pool(c.path[0])
	if p == nil {
		return nil, problem.NotFound("ResourcePool")
	}
	if err := c.silentAdmin(); err != nil {
		return nil, err
	}
	if p.ID == 0 {
		return nil, problem.Text(400, "This is the default pool, it cannot be deleted.")
	}
	if c.DB.Machines.Find(func(m *inventory.Machine) bool { return m.PoolID == p.ID }) != nil {
		return nil, problem.Text(400, "Pool has machines in it, it cannot be deleted.")
	}
	for _, h := range c.DB.VMHosts.All() {
		if h.PoolID == p.ID {
			c.DB.VMHosts.Edit(h.ID).PoolID = 0
		}
	}
	c.DB.Pools.Delete(p.ID)
	return noContent, nil
}

func maasResource() resource {
	return resource{name: "maas", ops: ops{
		"GET get_config":  {read: getConfig},
		"POST set_config": {write: setConfig},
	}}
}

func getConfig(c *call) (any, error) {
	name := c.form.Get("name")
	if !c.form.Has("name") {
		return nil, problem.Text(400, "No provided name!")
	}
	fallback, known := settings[name]
	if !known {
		return nil, problem.Field(name, "%s", unknownSetting(name))
	}
	if value := c.DB.Setting(name); value != nil {
		return value, nil
	}
	if name == "default_distro_series" || name == "commissioning_distro_series" {
		return c.defaultSeries(), nil
	}
	return fallback, nil
}

func setConfig(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	name, raw := c.form.Get("name"), c.form.Get("value")
	for _, key := range []string{"name", "value"} {
		if !c.form.Has(key) {
			return nil, problem.Text(400, "No provided %s!", key)
		}
	}
	fallback, known := settings[name]
	if !known {
		return nil, problem.Field(name, "%s", unknownSetting(name))
	}
	if name == "default_distro_series" || name == "commissioning_distro_series" {
		if err := c.checkRelease(name, raw); err != nil {
			return nil, err
		}
	}
	value, err := settingValue(name, raw, fallback)
	if err != nil {
		return nil, err
	}
	c.DB.Settings.Put(&inventory.Setting{Name: name, Value: value})
	return text(200, "OK"), nil
}

// settingValue parses a value of the setting's type.
func settingValue(name, raw string, fallback any) (any, error) {
	switch fallback.(type) {
	case bool:
		return raw == "true" || raw == "True" || raw == "1" || raw == "on", nil
	case int:
		n, err := strconv.Atoi(raw)
		if err != nil {
			return nil, problem.Field(name, "Enter a whole number.")
		}
		return n, nil
	}
	return raw, nil
}

func unknownSetting(name string) string {
	return fmt.Sprintf("%s is not a valid config setting (valid settings are: %s).", name, settingNames)
}
