// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// goneResource responds to the paths of VM hosts in versions that no longer have them.
func goneResource(name string) resource {
	gone := op{anonymous: true, read: func(*call) (any, error) {
		return nil, problem.Text(410, "VM hosts are no longer supported.")
	}}
	return resource{name: name, open: true, ops: ops{
		"GET": gone, "POST": gone, "PUT": gone, "DELETE": gone, "POST compose": gone, "POST refresh": gone,
		"POST add_tag": gone, "POST remove_tag": gone, "GET parameters": gone,
	}}
}

// vmHostRoutes returns the paths of VM hosts and of their objects, including the older names of the paths.
func (s *Server) vmHostRoutes() []route {
	resources := map[string]resource{
		"vm-hosts/": vmHostsResource(), "vm-hosts/{}/": vmHostResource(), "pods/": vmHostsResource(), "pods/{}/": vmHostResource(),
		"vm-clusters/": vmClustersResource(), "vm-clusters/{}/": vmClusterResource(),
		"virtual-machines/": virtualMachinesResource(), "virtual-machines/{}": virtualMachineResource(),
	}
	var routes []route
	for path, r := range resources {
		if !s.print.Version.VMHosts() {
			r = goneResource(r.name)
		}
		routes = append(routes, s.handle(path, r))
	}
	return routes
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
		"POST refresh":    {write: onVMHost(refreshVMHost)},
		"POST add_tag":    {write: taggingVMHost(tagVMHost)},
		"POST remove_tag": {write: taggingVMHost(untagVMHost)},
		"GET parameters": {read: func(c *call) (any, error) {
			h, err := c.ownVMHost()
			if err != nil {
				return nil, err
			}
			return h.Parameters, nil
		}},
	}}
}

// vmHost returns the VM host in the path. A path segment that is not a number is an internal error in MAAS.
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

// ownVMHost returns the VM host in the path to an administrator. Other users get an error before the host is looked
// up.
func (c *call) ownVMHost() (*inventory.VMHost, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	return c.vmHost()
}

func onVMHost(do func(*call, *inventory.VMHost) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		h, err := c.ownVMHost()
		if err != nil {
			return nil, err
		}
		h = c.DB.VMHosts.Edit(h.ID)
		if err := do(c, h); err != nil {
			return nil, err
		}
		return c.print.VMHost(h), nil
	}
}

// taggingVMHost checks the tag before it looks up the host, as MAAS does.
func taggingVMHost(do func(h *inventory.VMHost, tag string)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if err := c.admin(); err != nil {
			return nil, err
		}
		if !c.form.Has("tag") {
			return nil, problem.Text(400, "No provided tag!")
		}
		tag := c.form.Get("tag")
		if c.op == "add_tag" && strings.Contains(tag, ",") {
			return nil, problem.Text(400, `Tag may not contain a ",".`)
		}
		return onVMHost(func(_ *call, h *inventory.VMHost) error {
			do(h, tag)
			return nil
		})(c)
	}
}

func tagVMHost(h *inventory.VMHost, tag string) {
	if !slices.Contains(h.Tags, tag) {
		h.Tags = append(slices.Clone(h.Tags), tag)
	}
}

func untagVMHost(h *inventory.VMHost, tag string) {
	h.Tags = slices.DeleteFunc(slices.Clone(h.Tags), func(t string) bool { return t == tag })
}

// consoleTag is the tag that MAAS adds to every VM host. Its VMs get it too.
const consoleTag = "pod-console-logging"

// unreachable is the driver's error message for a host that does not answer.
const unreachable = "Failed talking to pod: VM Host %d: Failed to connect to the LXD REST API."

// refreshVMHost refreshes the host. It removes machines whose VM is lost.
func refreshVMHost(c *call, h *inventory.VMHost) error {
	if h.Away {
		return problem.Unavailable(unreachable, h.ID)
	}
	tagVMHost(h, consoleTag)
	for _, m := range c.DB.MachinesOf(h.ID) {
		if m.VM.Lost {
			c.Life.Remove(c.DB.Machines.Edit(m.SystemID))
		}
	}
	return nil
}

// deleteVMHost deletes the host and its machines from MAAS. The parameter decompose has no effect, because the
// simulator does not keep VMs that MAAS does not list.
func deleteVMHost(c *call) (any, error) {
	h, err := c.ownVMHost()
	if err != nil {
		return nil, err
	}
	c.removeVMHost(h)
	return noContent, nil
}

// removeVMHost deletes a VM host and its machines from MAAS.
func (c *call) removeVMHost(h *inventory.VMHost) {
	for _, m := range c.DB.MachinesOf(h.ID) {
		c.Life.Remove(c.DB.Machines.Edit(m.SystemID))
	}
	c.DB.VMHosts.Delete(h.ID)
}
