// SPDX-License-Identifier: Apache-2.0

package staticip

import (
	"slices"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// Modes of a link as MAAS prints them.
const (
	modeStatic = "static"
	modeAuto   = "auto"
	modeDHCP   = "dhcp"
)

// Find returns the interface and the link through which a machine has a static address; nil when it does not have it.
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

// Interface returns the interface that gets an address of a subnet: one that is linked to the subnet, else one that hangs on its
// VLAN; of several the one that the machine boots from, else the first. It is nil when no enabled interface is there.
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

// absorbed tells that an interface is a part of a bond or bridge, which has the addresses in its place.
func absorbed(m *maas.Machine, nic *maas.Interface) bool {
	return slices.ContainsFunc(m.Interfaces, func(other maas.Interface) bool {
		return (other.Type == "bond" || other.Type == "bridge") && slices.Contains(other.Parents, nic.Name)
	})
}

// Automatic are the links of an interface by which MAAS or a DHCP server would choose an address of the subnet.
func Automatic(nic *maas.Interface, subnetID int) []maas.Link {
	return slices.DeleteFunc(slices.Clone(nic.Links), func(l maas.Link) bool {
		return l.Subnet == nil || l.Subnet.ID != subnetID || l.Mode != modeAuto && l.Mode != modeDHCP
	})
}

// Own returns a static address of the machine that the spec allows; empty when it has none.
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
