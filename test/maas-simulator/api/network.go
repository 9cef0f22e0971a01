// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

func subnetsResource() resource {
	return resource{name: "subnets", ops: ops{"GET": {read: func(c *call) (any, error) {
		out := []any{}
		for _, s := range c.DB.Subnets.All() {
			out = append(out, c.print.Subnet(&s.ID))
		}
		return out, nil
	}}}}
}

func subnetResource() resource {
	with := func(do func(*call, *inventory.Subnet) (any, error)) op {
		return op{read: func(c *call) (any, error) {
			s := constraints.SubnetBySpec(c.DB, c.path[0])
			if s == nil {
				return nil, problem.NotFound("Subnet")
			}
			return do(c, s)
		}}
	}
	return resource{name: "subnet", ops: ops{
		"GET":                      with(func(c *call, s *inventory.Subnet) (any, error) { return c.print.Subnet(&s.ID), nil }),
		"GET reserved_ip_ranges":   with(reservedRanges),
		"GET unreserved_ip_ranges": with(unreservedRanges),
		"GET statistics":           with(subnetStatistics),
		"GET ip_addresses":         with(subnetAddresses),
	}}
}

func span(s inventory.Span) render.Object {
	return render.Object{"start": s.Start.String(), "end": s.End.String(), "num_addresses": int64(s.Size())}
}

// reservedRanges renders the ranges in use. Adjacent ranges are merged, except dynamic ranges with other ranges.
func reservedRanges(c *call, s *inventory.Subnet) (any, error) {
	out := []any{}
	for _, taken := range merged(c, s) {
		o := span(taken)
		o["purpose"] = taken.Purposes
		out = append(out, o)
	}
	return out, nil
}

func merged(c *call, s *inventory.Subnet) []inventory.Span {
	return inventory.Merge(c.DB.Taken(s), func(a, b inventory.Span) bool {
		return slices.Contains(a.Purposes, "dynamic") == slices.Contains(b.Purposes, "dynamic")
	})
}

func unreservedRanges(c *call, s *inventory.Subnet) (any, error) {
	out := []any{}
	for _, free := range c.DB.Free(s) {
		out = append(out, span(free))
	}
	return out, nil
}

func subnetStatistics(c *call, s *inventory.Subnet) (any, error) {
	hosts := s.Hosts()
	total, available, largest := hosts.Size(), 0.0, 0.0
	for _, free := range c.DB.Free(s) {
		available += free.Size()
		largest = max(largest, free.Size())
	}
	usage := 1 - available/total
	version := 6
	if hosts.Start.Is4() {
		version = 4
	}
	out := render.Object{
		"num_available": int64(available), "largest_available": int64(largest), "num_unavailable": int64(total - available),
		"total_addresses": int64(total), "usage": usage, "usage_string": fmt.Sprintf("%d%%", int(math.Round(usage*100))),
		"available_string": fmt.Sprintf("%d%%", int(math.Round((1-usage)*100))), "first_address": hosts.Start.String(),
		"last_address": hosts.End.String(), "ip_version": version,
	}
	if c.form.Bool("include_ranges") {
		ranges, err := reservedRanges(c, s)
		if err != nil {
			return nil, err
		}
		out["ranges"] = ranges
	}
	if c.form.Bool("include_suggestions") {
		out["suggested_gateway"], out["suggested_dynamic_range"] = s.Hosts().Start.String(), nil
	}
	return out, nil
}

// subnetAddresses renders the addresses of a subnet that are in use, with their users and nodes.
func subnetAddresses(c *call, s *inventory.Subnet) (any, error) {
	out := []any{}
	username := !c.form.Has("with_username") || c.form.Bool("with_username")
	summary := !c.form.Has("with_summary") || c.form.Bool("with_summary")
	add := func(a *inventory.Address, node func() render.Object) {
		if a.SubnetID == nil || *a.SubnetID != s.ID {
			return
		}
		o := render.Object{
			"ip": a.IP, "alloc_type": a.Type, "created": render.EventTime(a.Created), "updated": render.EventTime(a.Updated),
		}
		if username {
			o["user"] = a.Owner
		}
		if summary && node != nil {
			o["node_summary"] = node()
		}
		out = append(out, o)
	}
	for _, a := range c.DB.Addresses.All() {
		var node func() render.Object
		if nic := firstDoc(a.Interfaces); nic != nil {
			node = func() render.Object { return c.nodeSummary(nic) }
		}
		add(a, node)
	}
	for h := range c.DB.Holdings() {
		add(&inventory.Address{
			IP: h.Link.IP, Type: render.AllocType(h.Link.Mode), SubnetID: h.Link.SubnetID, Owner: h.Machine.Owner,
			Created: h.Link.Since, Updated: h.Link.Since,
		}, func() render.Object {
			return render.Object{
				"system_id": h.Machine.SystemID, "node_type": 0, "fqdn": c.DB.FQDN(h.Machine), "hostname": h.Machine.Hostname,
				"is_container": false, "via": h.Interface.Name,
			}
		})
	}
	return out, nil
}

func firstDoc(list []any) map[string]any {
	if len(list) == 0 {
		return nil
	}
	doc, _ := list[0].(map[string]any)
	return doc
}

func (c *call) nodeSummary(nic map[string]any) render.Object {
	id, _ := nic["system_id"].(string)
	out := render.Object{"system_id": id, "node_type": 2, "fqdn": "", "hostname": "", "is_container": false, "via": nic["name"]}
	if n := c.DB.Nodes.Get(id); n != nil {
		doc := c.print.Node(n)
		out["fqdn"], out["hostname"], out["node_type"] = doc["fqdn"], doc["hostname"], doc["node_type"]
	}
	return out
}

func spacesResource() resource {
	return resource{name: "spaces", ops: ops{"GET": {read: func(c *call) (any, error) { return c.print.Spaces(), nil }}}}
}

func spaceResource() resource {
	return resource{name: "space", ops: ops{"GET": {read: func(c *call) (any, error) {
		if c.path[0] == "undefined" || c.path[0] == "-1" {
			return c.print.Undefined(), nil
		}
		s := c.DB.Spaces.Find(func(s *inventory.Space) bool { return s.Name == c.path[0] || strconv.Itoa(s.ID) == c.path[0] })
		if s == nil {
			return nil, problem.NotFound("Space")
		}
		return c.print.Space(s), nil
	}}}}
}

func fabricsResource() resource {
	return resource{name: "fabrics", ops: ops{"GET": {read: func(c *call) (any, error) {
		out := []any{}
		for _, f := range c.DB.Fabrics.All() {
			out = append(out, c.print.Fabric(f))
		}
		return out, nil
	}}}}
}

func (c *call) fabric() *inventory.Fabric {
	return c.DB.Fabrics.Find(func(f *inventory.Fabric) bool { return f.Name == c.path[0] || strconv.Itoa(f.ID) == c.path[0] })
}

func fabricResource() resource {
	return resource{name: "fabric", ops: ops{"GET": {read: func(c *call) (any, error) {
		f := c.fabric()
		if f == nil {
			return nil, problem.NotFound("Fabric")
		}
		return c.print.Fabric(f), nil
	}}}}
}

func fabricVLANsResource() resource {
	return resource{name: "fabric-vlans", ops: ops{"GET": {read: func(c *call) (any, error) {
		f := c.fabric()
		if f == nil {
			return nil, problem.NotFound("Fabric")
		}
		return c.print.VLANsOf(f.ID), nil
	}}}}
}

func vlanResource() resource {
	return resource{name: "vlan", ops: ops{"GET": {read: func(c *call) (any, error) {
		id, err := strconv.Atoi(c.path[0])
		if err != nil || c.DB.VLANs.Get(id) == nil {
			return nil, problem.NotFound("VLAN")
		}
		return c.print.VLAN(&id), nil
	}}}}
}

func rangesResource() resource {
	return resource{name: "ipranges", ops: ops{"GET": {read: func(c *call) (any, error) {
		out := []any{}
		for _, r := range c.DB.Ranges.All() {
			out = append(out, c.print.Range(r))
		}
		return out, nil
	}}}}
}

func rangeResource() resource {
	return resource{name: "iprange", ops: ops{"GET": {read: func(c *call) (any, error) {
		id, err := strconv.Atoi(c.path[0])
		if err != nil || c.DB.Ranges.Get(id) == nil {
			return nil, problem.NotFound("IPRange")
		}
		return c.print.Range(c.DB.Ranges.Get(id)), nil
	}}}}
}
