// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

func virtualMachinesResource() resource {
	return resource{name: "virtual-machines", ops: ops{"GET": {read: func(c *call) (any, error) {
		out := []any{}
		for _, m := range c.DB.Machines.All() {
			if m.VM != nil {
				out = append(out, c.print.VM(m))
			}
		}
		return out, nil
	}}}}
}

// virtualMachineResource describes the VM resource, whose ID is the virtualmachine_id of the VM's machine.
func virtualMachineResource() resource {
	return resource{name: "virtual-machine", ops: ops{"GET": {read: func(c *call) (any, error) {
		id, err := strconv.Atoi(c.path[0])
		if err != nil {
			return nil, problem.Text(500, "Field 'id' expected a number but got '%s'.", c.path[0])
		}
		m := c.DB.Machines.Find(func(m *inventory.Machine) bool { return m.VM != nil && m.VM.ID == id })
		if m == nil {
			return nil, problem.NotFound("VirtualMachine")
		}
		return c.print.VM(m), nil
	}}}}
}

// vmClustersResource lists clusters of LXD hosts. The simulator has none.
func vmClustersResource() resource {
	return resource{name: "vm-clusters", ops: ops{"GET": {read: func(*call) (any, error) { return []any{}, nil }}}}
}

func vmClusterResource() resource {
	return resource{name: "vm-cluster", ops: ops{"GET": {read: func(*call) (any, error) { return nil, problem.NotFound("VMCluster") }}}}
}
