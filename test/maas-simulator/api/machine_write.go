// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func updateMachine(c *call) (any, error) {
	m, err := c.edit(toAdmin)
	if err != nil {
		return nil, err
	}
	f := problem.Fields{}
	checkHostname(c, m, c.form.Get("hostname"), f)
	placeMachine(c, m, f)
	if c.form.Has("architecture") {
		m.Architecture = c.form.Get("architecture")
		checkArchitecture(c, m, f)
	}
	if c.form.Has("description") {
		m.Description = c.form.Get("description")
	}
	if c.form.Has("min_hwe_kernel") {
		kernel := c.form.Get("min_hwe_kernel")
		m.MinHWEKernel = &kernel
	}
	updatePower(c, m, f)
	updateSizes(c, m, f)
	if err := f.Problem(); err != nil {
		return nil, err
	}
	return c.print.Machine(m), nil
}

var powerTypes = map[string]bool{
	"": true, "amt": true, "apc": true, "dli": true, "eaton": true, "hmc": true, "hmcz": true, "ipmi": true, "lxd": true, "manual": true,
	"moonshot": true, "mscm": true, "msftocs": true, "nova": true, "openbmc": true, "proxmox": true, "raritan": true, "recs_box": true,
	"redfish": true, "sm15k": true, "ucsm": true, "virsh": true, "vmware": true, "webhook": true, "wedge": true,
}

func updatePower(c *call, m *inventory.Machine, f problem.Fields) {
	if c.form.Has("power_type") {
		kind := c.form.Get("power_type")
		if !powerTypes[kind] {
			f.Add("power_type", "Select a valid choice. %s is not one of the available choices.", kind)
		}
		m.PowerType = kind
	}
	if given := formPowerParameters(c.form, f); given != nil {
		if m.PowerParameters == nil {
			m.PowerParameters = map[string]any{}
		}
		for key, value := range given {
			m.PowerParameters[key] = value
		}
	}
}

func updateSizes(c *call, m *inventory.Machine, f problem.Fields) {
	number := func(name string, set func(int)) {
		if !c.form.Has(name) || c.form.Get(name) == "" {
			return
		}
		n, err := strconv.Atoi(c.form.Get(name))
		if err != nil {
			f.Add(name, "Enter a whole number.")
			return
		}
		if n < 0 {
			f.Add(name, "Ensure this value is greater than or equal to 0.")
			return
		}
		set(n)
	}
	number("cpu_count", func(n int) { m.CPUCount = n })
	number("memory", func(n int) { m.Memory = int64(n) })
	number("swap_size", func(n int) {
		size := int64(n)
		m.SwapSize = &size
	})
	if c.form.Has("disable_ipv4") {
		m.Extra["disable_ipv4"] = c.form.Bool("disable_ipv4")
	}
}

func deleteMachine(c *call) (any, error) {
	m, err := c.edit(toAdmin)
	if err != nil {
		return nil, err
	}
	if err := c.freeOfVMHosts(m, c.query.Bool("force")); err != nil {
		return nil, err
	}
	c.Life.Remove(m)
	return noContent, nil
}
