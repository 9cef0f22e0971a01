// SPDX-License-Identifier: Apache-2.0

package staticip

import (
	"slices"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// Link modes as MAAS returns them.
const (
	modeStatic = "static"
	modeAuto   = "auto"
	modeDHCP   = "dhcp"
)

// Find returns the interface and the link with a static address; nil if the machine does not have the address.
func Find(m *maas.Machine, ip string) (*maas.Interface, *maas.Link) {
	for i := range m.Interfaces {
		nic := &m.Interfaces[i]
		for j := range nic.Links {
			if nic.Links[j].Mode == modeStatic && same(nic.Links[j].IPAddress, ip) {
				return nic, &nic.Links[j]
			}
		}
	}
	return nil, nil
}

// Interface returns the interface that gets an address of a subnet: one with a link to the subnet, else one on its
// VLAN. If several match, the boot interface takes precedence, else the first one. It returns nil if no enabled
// interface matches.
func Interface(m *maas.Machine, subnet *maas.Subnet) *maas.Interface {
	linked := func(nic *maas.Interface) bool {
		return slices.ContainsFunc(nic.Links, func(l maas.Link) bool { return l.Subnet != nil && l.Subnet.ID == subnet.ID })
	}
	plugged := func(nic *maas.Interface) bool {
		return nic.VLAN != nil && subnet.VLAN != nil && nic.VLAN.ID == subnet.VLAN.ID && !absorbed(m, nic)
	}
	if nic := first(m, linked); nic != nil {
		return nic
	}
	return first(m, plugged)
}

func first(m *maas.Machine, suits func(*maas.Interface) bool) *maas.Interface {
	var found *maas.Interface
	for i := range m.Interfaces {
		nic := &m.Interfaces[i]
		if !nic.Enabled || !suits(nic) {
			continue
		}
		if m.BootInterface != nil && m.BootInterface.ID == nic.ID {
			return nic
		}
		if found == nil {
			found = nic
		}
	}
	return found
}

// absorbed reports whether an interface is part of a bond or bridge, which has the addresses instead.
func absorbed(m *maas.Machine, nic *maas.Interface) bool {
	return slices.ContainsFunc(m.Interfaces, func(other maas.Interface) bool {
		return (other.Type == "bond" || other.Type == "bridge") && slices.Contains(other.Parents, nic.Name)
	})
}

// Automatic returns the links through which MAAS or a DHCP server would choose an address of the subnet.
func Automatic(nic *maas.Interface, subnetID int) []maas.Link {
	return slices.DeleteFunc(slices.Clone(nic.Links), func(l maas.Link) bool {
		return l.Subnet == nil || l.Subnet.ID != subnetID || l.Mode != modeAuto && l.Mode != modeDHCP
	})
}

// Own returns a static address of the machine that the spec permits; empty if it has none.
func Own(m *maas.Machine, spec *infrav1.StaticIPConfig) string {
	run, refusal := wanted(spec)
	if refusal != nil {
		return ""
	}
	for _, ip := range m.IPAddresses {
		if _, link := Find(m, ip); link != nil && run.hasText(ip) {
			return ip
		}
	}
	return ""
}
