// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// right is a kind of access to a machine.
type right int

const (
	toView right = iota
	toEdit
	toAdmin
)

// may reports whether a user has a right on a machine. Users other than administrators have rights on their own
// machines and on machines without an owner. A locked machine cannot be changed.
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

// machine returns the machine in the path, or an error if the user does not have the right.
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

// edit returns the machine in the path, to be changed by the caller.
func (c *call) edit(r right) (*inventory.Machine, error) {
	m, err := c.machine(r)
	if err != nil {
		return nil, err
	}
	return c.DB.Machines.Edit(m.SystemID), nil
}

// visible renders the machines that the user may see and for which fits returns true.
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
