// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// The error messages for invalid values of a form.
const (
	required      = "This field is required."
	unknownChoice = "Select a valid choice. That choice is not one of the available choices."
	unknownValue  = "Select a valid choice. %s is not one of the available choices."
)

// driverParameters are the connection parameters of each type of VM host.
var driverParameters = map[string][]string{
	"lxd":   {"power_address", "project", "password", "certificate", "key"},
	"virsh": {"power_address", "power_pass"},
}

func createVMHost(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	f := problem.Fields{}
	h := lifecycle.Discovered()
	h.Name, h.Type = c.form.Get("name"), c.form.Get("type")
	switch {
	case h.Type == "":
		f.Add("type", required)
	case driverParameters[h.Type] == nil:
		f.Add("type", unknownValue, h.Type)
	}
	if pool := c.form.Get("default_storage_pool"); pool != "" {
		f.Add("default_storage_pool", unknownChoice) // MAAS knows no storage pool before it first refreshes the host.
	}
	c.placeVMHost(h, f)
	if err := c.reachVMHost(h, f); err != nil {
		return nil, err
	}
	h.ID = c.DB.Next("vmhosts")
	if h.Name == "" {
		h.Name = c.DB.NewHostname()
	}
	tagVMHost(h, consoleTag)
	c.DB.VMHosts.Put(h)
	return c.print.VMHost(h), nil
}

func updateVMHost(c *call, h *inventory.VMHost) error {
	f := problem.Fields{}
	switch kind := c.form.Get("type"); {
	case kind == "" || kind == h.Type:
	case driverParameters[kind] == nil:
		f.Add("type", unknownValue, kind)
	default:
		f.Add("type", "Cannot change the type of a pod. Delete and re-create the pod with a different type.")
	}
	if name := c.form.Get("name"); name != "" {
		h.Name = name
	}
	if id := c.form.Get("default_storage_pool"); id != "" {
		if !slices.ContainsFunc(h.StoragePools, func(p inventory.StoragePool) bool { return p.ID == id }) {
			f.Add("default_storage_pool", unknownChoice)
		}
		for i := range h.StoragePools {
			h.StoragePools[i].Default = h.StoragePools[i].ID == id
		}
	}
	c.placeVMHost(h, f)
	if err := c.reachVMHost(h, f); err != nil {
		return err
	}
	tagVMHost(h, consoleTag)
	return nil
}

// reachVMHost parses the connection parameters, if there are no other errors.
func (c *call) reachVMHost(h *inventory.VMHost, f problem.Fields) error {
	if err := f.Problem(); err != nil {
		return err
	}
	h.Parameters = maps.Clone(h.Parameters)
	if h.Parameters == nil {
		h.Parameters = map[string]any{"project": "default", "certificate": "", "key": ""}
		if h.Type == "virsh" {
			h.Parameters = map[string]any{"power_pass": ""}
		}
	}
	for _, key := range driverParameters[h.Type] {
		if c.form.Has(key) && key != "password" { // MAAS does not store a trust password.
			h.Parameters[key] = c.form.Get(key)
		}
	}
	if address, _ := h.Parameters["power_address"].(string); address == "" {
		return problem.Field("power_address", required)
	}
	for _, other := range c.DB.VMHosts.All() {
		if other.ID != h.ID && other.Type == h.Type && other.Parameters["power_address"] == h.Parameters["power_address"] &&
			other.Parameters["project"] == h.Parameters["project"] {
			return problem.Text(400, "Pod %s with type and parameters already exist.", other.Name)
		}
	}
	return nil
}

var macvlanModes = []string{"", "bridge", "passthru", "private", "vepa"}

// placeVMHost parses the parameters of the host other than the connection parameters.
func (c *call) placeVMHost(h *inventory.VMHost, f problem.Fields) {
	taken := func(other *inventory.VMHost) bool { return other.Name == h.Name && other.ID != h.ID }
	if h.Name != "" && c.DB.VMHosts.Find(taken) != nil {
		f.Add("name", "Pod with this Name already exists.")
	}
	if name := c.form.Get("zone"); name != "" {
		if z := c.DB.ZoneByName(name); z != nil {
			h.ZoneID = z.ID
		} else {
			f.Add("zone", unknownChoice)
		}
	}
	if name := c.form.Get("pool"); name != "" {
		if p := c.DB.PoolByName(name); p != nil {
			h.PoolID = p.ID
		} else {
			f.Add("pool", unknownChoice)
		}
	}
	c.ratio("cpu_over_commit_ratio", &h.CPUOverCommit, f)
	c.ratio("memory_over_commit_ratio", &h.MemoryOverCommit, f)
	if c.form.Has("tags") {
		h.Tags = listed(c.form.Get("tags"))
	}
	if mode := c.form.Get("default_macvlan_mode"); slices.Contains(macvlanModes, mode) {
		if c.form.Has("default_macvlan_mode") {
			h.MacvlanMode = mode
		}
	} else {
		f.Add("default_macvlan_mode", unknownValue, mode)
	}
}

func (c *call) ratio(key string, into *float64, f problem.Fields) {
	raw := c.form.Get(key)
	if raw == "" {
		return
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(raw), 64)
	switch {
	case err != nil:
		f.Add(key, "Enter a number.")
	case n < 0:
		f.Add(key, "Ensure this value is greater than or equal to 0.")
	case n > 10:
		f.Add(key, "Ensure this value is less than or equal to 10.")
	default:
		*into = n
	}
}

// listed splits a list at commas.
func listed(text string) []string {
	out := []string{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
