// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"net/netip"
	"slices"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// assignAuto assigns an address to every auto link of an enabled interface that has none.
func (l *Life) assignAuto(m *inventory.Machine) error {
	for i := range m.Interfaces {
		if !m.Interfaces[i].Enabled {
			continue
		}
		for j := range m.Interfaces[i].Links {
			link := &m.Interfaces[i].Links[j]
			if link.Mode != "auto" || link.IP != "" || link.SubnetID == nil {
				continue
			}
			ip, err := l.PickIP(*link.SubnetID)
			if err != nil {
				return err
			}
			link.IP, link.Since = ip.String(), l.Clock.Now()
		}
	}
	return nil
}

func (l *Life) releaseAuto(m *inventory.Machine) {
	for i := range m.Interfaces {
		for j := range m.Interfaces[i].Links {
			if link := &m.Interfaces[i].Links[j]; link.Mode == "auto" {
				link.IP = ""
			}
		}
	}
}

// PickIP returns a free address. It uses the smallest free range first.
func (l *Life) PickIP(subnet int) (netip.Addr, error) {
	s := l.DB.Subnets.Get(subnet)
	if s == nil {
		return netip.Addr{}, problem.NotFound("Subnet")
	}
	var best inventory.Span
	for _, free := range l.DB.Free(s) {
		if !best.Start.IsValid() || free.Size() < best.Size() {
			best = free
		}
	}
	if !best.Start.IsValid() {
		return netip.Addr{}, problem.Text(503, "No more IPs available in subnet: %s.", s.CIDR)
	}
	return best.Start, nil
}

// rollBackNetwork undoes the changes of an allocation to the interfaces.
func (l *Life) rollBackNetwork(m *inventory.Machine) {
	l.releaseAuto(m)
	for _, bridge := range m.Interfaces {
		if !bridge.Acquired {
			continue
		}
		for i := range m.Interfaces {
			if slices.Contains(bridge.Parents, m.Interfaces[i].Name) {
				m.Interfaces[i].Links = append(m.Interfaces[i].Links, bridge.Links...)
				m.Interfaces[i].Children = slices.DeleteFunc(slices.Clone(m.Interfaces[i].Children),
					func(name string) bool { return name == bridge.Name })
			}
		}
	}
	m.Interfaces = slices.DeleteFunc(m.Interfaces, func(nic inventory.Interface) bool { return nic.Acquired })
}
