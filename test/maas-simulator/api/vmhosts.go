package api

import (
	"maps"
	"slices"
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// goneResource answers where VM hosts were before MAAS gave them up.
func goneResource() resource {
	gone := op{anonymous: true, read: func(*call) (any, error) {
		return nil, problem.Text(410, "VM hosts are no longer supported.")
	}}
	return resource{name: "vm-hosts", open: true, ops: ops{
		"GET": gone, "POST": gone, "PUT": gone, "DELETE": gone, "POST compose": gone, "POST refresh": gone,
		"POST add_tag": gone, "POST remove_tag": gone, "GET parameters": gone,
	}}
}

func vmHostsResource() resource {
	return resource{name: "vm-hosts", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			out := []any{}
			for _, h := range c.DB.VMHosts.All() {
				out = append(out, c.print.VMHost(h))
			}
			return out, nil
		}},
		"POST": {write: createVMHost},
	}}
}

func vmHostResource() resource {
	return resource{name: "vm-host", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			h, err := c.vmHost()
			if err != nil {
				return nil, err
			}
			return c.print.VMHost(h), nil
		}},
		"PUT":             {write: onVMHost(updateVMHost)},
		"DELETE":          {write: deleteVMHost},
		"POST compose":    {write: compose},
		"POST refresh":    {write: onVMHost(func(*call, *inventory.VMHost) error { return nil })},
		"POST add_tag":    {write: onVMHost(tagVMHost)},
		"POST remove_tag": {write: onVMHost(untagVMHost)},
		"GET parameters": {read: func(c *call) (any, error) {
			if err := c.silentAdmin(); err != nil {
				return nil, err
			}
			h, err := c.vmHost()
			if err != nil {
				return nil, err
			}
			return h.Parameters, nil
		}},
	}}
}

// vmHost finds the VM host in the path; what is no number crashes the server.
func (c *call) vmHost() (*inventory.VMHost, error) {
	id, err := strconv.Atoi(c.path[0])
	if err != nil {
		return nil, problem.Text(500, "Field 'id' expected a number but got '%s'.", c.path[0])
	}
	h := c.DB.VMHosts.Get(id)
	if h == nil {
		return nil, problem.NotFound("Pod")
	}
	return h, nil
}

func onVMHost(do func(*call, *inventory.VMHost) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		h, err := c.vmHost()
		if err != nil {
			return nil, err
		}
		if err := c.silentAdmin(); err != nil {
			return nil, err
		}
		h = c.DB.VMHosts.Edit(h.ID)
		if err := do(c, h); err != nil {
			return nil, err
		}
		return c.print.VMHost(h), nil
	}
}

func tagVMHost(c *call, h *inventory.VMHost) error {
	if tag := c.form.Get("tag"); tag != "" && !slices.Contains(h.Tags, tag) {
		h.Tags = append(slices.Clone(h.Tags), tag)
	}
	return nil
}

func untagVMHost(c *call, h *inventory.VMHost) error {
	h.Tags = slices.DeleteFunc(slices.Clone(h.Tags), func(t string) bool { return t == c.form.Get("tag") })
	return nil
}

// sizes of a VM host that is added by hand; a driver would discover them.
const (
	discoveredCores   = 16
	discoveredMemory  = 64 << 10
	discoveredStorage = 1_000_000_000_000
)

func createVMHost(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	f := problem.Fields{}
	h := &inventory.VMHost{
		Name: c.form.Get("name"), Type: c.form.Get("type"), ZoneID: 1, Tags: []string{"pod-console-logging", "virtual"},
		Architectures: []string{"amd64/generic"}, Capabilities: []string{"composable", "dynamic_local_storage", "over_commit", "storage_pools"},
		Cores: discoveredCores, Memory: discoveredMemory, Storage: discoveredStorage, CPUOverCommit: 1, MemoryOverCommit: 1,
		StoragePools: []any{render.Object{
			"id": "default", "name": "default", "type": "dir", "path": "/var/lib/lxd", "default": true,
			"total": discoveredStorage, "used": 0, "available": discoveredStorage,
		}},
		Parameters: map[string]any{"power_address": c.form.Get("power_address"), "project": c.form.Get("project")},
	}
	if h.Type != "lxd" && h.Type != "virsh" {
		f.Add("type", "Select a valid choice. %s is not one of the available choices.", h.Type)
	}
	address := c.form.Get("power_address")
	if address == "" {
		f.Add("power_address", "This field is required.")
	}
	for _, other := range c.DB.VMHosts.All() {
		if h.Name != "" && other.Name == h.Name {
			f.Add("name", "Pod with this Name already exists.")
		}
		if other.Parameters["power_address"] == address && other.Parameters["project"] == h.Parameters["project"] {
			f.Add("__all__", "VM Host already exists with the given power parameters.")
		}
	}
	c.placeVMHost(h, f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	h.ID = c.DB.Next("vmhosts")
	if h.Name == "" {
		h.Name = c.DB.NewHostname()
	}
	c.DB.VMHosts.Put(h)
	return c.print.VMHost(h), nil
}

func (c *call) placeVMHost(h *inventory.VMHost, f problem.Fields) {
	const unknown = "Select a valid choice. That choice is not one of the available choices."
	if name := c.form.Get("zone"); name != "" {
		if z := c.DB.ZoneByName(name); z != nil {
			h.ZoneID = z.ID
		} else {
			f.Add("zone", "%s", unknown)
		}
	}
	if name := c.form.Get("pool"); name != "" {
		if p := c.DB.PoolByName(name); p != nil {
			h.PoolID = p.ID
		} else {
			f.Add("pool", "%s", unknown)
		}
	}
	for key, ratio := range map[string]*float64{"cpu_over_commit_ratio": &h.CPUOverCommit, "memory_over_commit_ratio": &h.MemoryOverCommit} {
		if raw := c.form.Get(key); raw != "" {
			n, err := strconv.ParseFloat(raw, 64)
			switch {
			case err != nil:
				f.Add(key, "Enter a number.")
			case n < 0 || n > 10:
				f.Add(key, "Ensure this value is less than or equal to 10.")
			default:
				*ratio = n
			}
		}
	}
	if c.form.Has("tags") {
		h.Tags = c.form.All("tags")
	}
	if c.form.Has("default_macvlan_mode") {
		h.MacvlanMode = c.form.Get("default_macvlan_mode")
	}
}

func updateVMHost(c *call, h *inventory.VMHost) error {
	f := problem.Fields{}
	if name := c.form.Get("name"); name != "" {
		h.Name = name
	}
	h.Parameters = maps.Clone(h.Parameters)
	for _, key := range []string{"power_address", "project"} {
		if c.form.Has(key) {
			if h.Parameters == nil {
				h.Parameters = map[string]any{}
			}
			h.Parameters[key] = c.form.Get(key)
		}
	}
	c.placeVMHost(h, f)
	return f.Problem()
}

func deleteVMHost(c *call) (any, error) {
	h, err := c.vmHost()
	if err != nil {
		return nil, err
	}
	if err := c.silentAdmin(); err != nil {
		return nil, err
	}
	c.removeVMHost(h)
	return noContent, nil
}

// removeVMHost takes a VM host out of MAAS, and its machines with it.
func (c *call) removeVMHost(h *inventory.VMHost) {
	for _, m := range c.DB.MachinesOf(h.ID) {
		c.Life.Remove(c.DB.Machines.Edit(m.SystemID))
	}
	c.DB.VMHosts.Delete(h.ID)
}
