// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/constraints"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// nicOrder is an interface of a VM to compose.
type nicOrder struct {
	name string
	vlan int
	// ips are the requested addresses; if there are none, MAAS assigns one.
	ips          []string
	unconfigured bool
}

// requestedInterfaces selects an interface of the host's machine for each label of the constraint. The VM is attached
// to that interface's network. Without a constraint, the VM has one interface, on the first VLAN with DHCP.
func (c *call) requestedInterfaces(h *inventory.VMHost, o order) ([]nicOrder, error) {
	if o.interfaces == "" {
		return c.defaultInterface(), nil
	}
	host := c.DB.Machines.Get(h.HostSystemID)
	if host == nil {
		return nil, problem.Text(400, "Pod must be on a known host if interfaces are specified.")
	}
	wanted, err := constraints.Interfaces(c.DB, o.interfaces)
	if err != nil {
		return nil, err
	}
	var nics []nicOrder
	boots := false
	for _, w := range wanted {
		nic := pickInterface(host, w)
		if nic == nil || nic.VLANID == nil {
			return nil, problem.Text(400, "This pod does not match the specified networks.")
		}
		boots = boots || c.DB.VLANs.Get(*nic.VLANID).DHCPOn
		nics = append(nics, nicOrder{name: w.Label, vlan: *nic.VLANID, ips: w.IPs, unconfigured: w.Mode == "unconfigured"})
	}
	if !boots {
		return nil, problem.Text(400, "MAAS DHCP must be enabled on at least one VLAN attached to the specified interfaces.")
	}
	return nics, nil
}

// pickInterface returns the best matching interface: a bridge before a bond, a bond before other types, and the
// newest of several equal ones.
func pickInterface(host *inventory.Machine, w constraints.InterfaceOrder) *inventory.Interface {
	var best *inventory.Interface
	rank := map[string]int{"bridge": 2, "bond": 1}
	for i := range host.Interfaces {
		nic := &host.Interfaces[i]
		if w.Fits(nic) && (best == nil || rank[nic.Type] >= rank[best.Type]) {
			best = nic
		}
	}
	return best
}

func (c *call) defaultInterface() []nicOrder {
	v := c.DB.VLANs.Find(func(v *inventory.VLAN) bool { return v.DHCPOn && c.subnetOn(v.ID) != nil })
	if v == nil {
		return nil
	}
	return []nicOrder{{name: "eth0", vlan: v.ID}}
}

// subnetOn returns the first subnet of a VLAN; nil if there is none.
func (c *call) subnetOn(vlan int) *inventory.Subnet {
	return c.DB.Subnets.Find(func(s *inventory.Subnet) bool { return s.VLANID == vlan })
}

// wire creates the interfaces of a VM. An interface without requested addresses gets one at deployment, on the first
// subnet of its VLAN.
func (c *call) wire(m *inventory.Machine, nics []nicOrder) error {
	for i, order := range nics {
		vlan := order.vlan
		nic := inventory.Interface{
			ID: c.DB.Next("interfaces"), Name: order.name, Type: "physical", MAC: c.DB.NewMAC(), Enabled: true, VLANID: &vlan,
		}
		if nic.Name == "" {
			nic.Name = "eth" + strconv.Itoa(i)
		}
		for _, ip := range order.ips {
			if c.held(ip) {
				return problem.Text(404, "The IP address %s is already in use.", ip)
			}
			nic.Links = append(nic.Links, inventory.Link{ID: c.DB.Next("links"), Mode: "static", SubnetID: c.subnetOf(ip), IP: ip, Since: c.Life.Clock.Now()})
		}
		if s := c.subnetOn(vlan); s != nil && len(nic.Links) == 0 {
			link := inventory.Link{ID: c.DB.Next("links"), Mode: "auto", SubnetID: &s.ID}
			if order.unconfigured {
				link.Mode = "link_up"
			}
			nic.Links = append(nic.Links, link)
		}
		m.Interfaces = append(slices.Clone(m.Interfaces), nic)
	}
	return nil
}
