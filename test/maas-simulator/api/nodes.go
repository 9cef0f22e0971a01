// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func nodesResource() resource {
	return resource{name: "nodes", open: true, ops: ops{
		"GET":               {read: listNodes},
		"GET is_registered": {read: isRegistered, anonymous: true},
		"POST set_zone":     {write: setZone},
	}}
}

// listNodes renders machines, then controllers and devices.
func listNodes(c *call) (any, error) {
	set, err := constraints.Filter(c.DB, c.form)
	if err != nil {
		return nil, err
	}
	out, err := c.visible(set.Fits)
	if err != nil || len(c.form.Without("op")) > 0 {
		return out, err
	}
	for _, n := range c.DB.Nodes.All() {
		body, err := json.Marshal(c.print.Node(n))
		if err != nil {
			return nil, err
		}
		out = append(out, body)
	}
	return out, nil
}

func nodeResource() resource {
	return resource{name: "node", open: true, ops: ops{
		"GET": {read: func(c *call) (any, error) {
			if n := c.DB.Nodes.Get(c.path[0]); n != nil {
				return c.print.Node(n), nil
			}
			if c.DB.Machines.Get(c.path[0]) == nil {
				return nil, problem.NotFound("Node")
			}
			return readMachine(c)
		}},
		"GET power_parameters": {read: readPowerParameters},
		"GET details":          {read: machineDetails},
	}}
}

func controllersResource(kind string) resource {
	return resource{name: kind, open: kind != "regioncontrollers", ops: ops{"GET": {read: func(c *call) (any, error) {
		out := []any{}
		for _, n := range c.DB.Nodes.All() {
			if n.Kind == kind {
				out = append(out, c.print.Node(n))
			}
		}
		return out, nil
	}}}}
}

func controllerResource(kind, model string) resource {
	return resource{name: kind + "-item", ops: ops{"GET": {read: func(c *call) (any, error) {
		n := c.DB.Nodes.Get(c.path[0])
		if n == nil || n.Kind != kind {
			return nil, problem.NotFound(model)
		}
		return c.print.Node(n), nil
	}}}}
}

func blockDevicesResource() resource {
	return resource{name: "blockdevices", ops: ops{"GET": {read: func(c *call) (any, error) {
		m, err := c.machine(toView)
		if err != nil {
			return nil, err
		}
		return c.print.Machine(m)["blockdevice_set"], nil
	}}}}
}

func blockDeviceResource() resource {
	return resource{name: "blockdevice", ops: ops{"GET": {read: func(c *call) (any, error) {
		m, err := c.machine(toView)
		if err != nil {
			return nil, err
		}
		for i := range m.Disks {
			if d := &m.Disks[i]; isID(c.path[1], d.ID) || d.Name == c.path[1] {
				return c.print.Disk(m, d), nil
			}
		}
		return nil, problem.NotFound("BlockDevice")
	}}}}
}

// region returns the region controller of a site whose seed has none.
func region(db *inventory.DB) *inventory.Node {
	return &inventory.Node{SystemID: db.NewSystemID(), Kind: "regioncontrollers", Doc: map[string]any{"hostname": "region"}}
}

// EnsureRegion adds a region controller to an inventory without one. It must run inside Update.
func EnsureRegion(db *inventory.DB) {
	if db.Nodes.Find(func(n *inventory.Node) bool { return n.Kind == "regioncontrollers" }) == nil {
		db.Nodes.Put(region(db))
	}
}
