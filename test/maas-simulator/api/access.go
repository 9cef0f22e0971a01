// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// right is what a caller wants to do with a machine.
type right int

const (
	toView right = iota
	toEdit
	toAdmin
)

// may tells whether a user has a right on a machine: plain users on what nobody
// else owns; a locked machine takes no changes from anybody.
func may(u *inventory.User, m *inventory.Machine, r right) bool {
	mine := u.Superuser || m.Owner == "" || m.Owner == u.Name
	switch r {
	case toView:
		return mine
	case toEdit:
		return mine && !m.Locked
	}
	return u.Superuser && !m.Locked
}

// machine finds the machine in the path.
func (c *call) machine(r right) (*inventory.Machine, error) {
	m := c.DB.Machines.Get(c.path[0])
	if m == nil {
		return nil, problem.NotFound("Machine")
	}
	if !may(c.user, m, r) {
		return nil, problem.Forbidden()
	}
	return m, nil
}

// edit finds the machine in the path for changing it.
func (c *call) edit(r right) (*inventory.Machine, error) {
	m, err := c.machine(r)
	if err != nil {
		return nil, err
	}
	return c.DB.Machines.Edit(m.SystemID), nil
}

// visible lists the machines that the caller sees.
func (c *call) visible(fits func(*inventory.Machine) bool) (list, error) {
	var out list
	for _, m := range c.DB.Machines.All() {
		if !may(c.user, m, toView) || !fits(m) {
			continue
		}
		body, err := c.machineJSON(m)
		if err != nil {
			return nil, err
		}
		out = append(out, body)
	}
	return out, nil
}
