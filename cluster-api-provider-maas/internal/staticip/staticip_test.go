// SPDX-License-Identifier: Apache-2.0

package staticip_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/maas"
)

func site() []maas.Subnet {
	return []maas.Subnet{
		{ID: 1, CIDR: "10.0.0.0/8", GatewayIP: "10.0.0.1"},
		{ID: 2, CIDR: "10.9.0.0/24", GatewayIP: "10.9.0.1", DNSServers: []string{"10.9.0.2", "fd00::53"}},
		{ID: 3, CIDR: "fd00::/64", GatewayIP: "fd00::1", DNSServers: []string{"fd00::53"}},
		{ID: 4, CIDR: "unreadable"},
	}
}

func ips(first, last string) *infrav1.IPRange { return &infrav1.IPRange{Start: first, End: last} }

func TestSubnet(t *testing.T) {
	for name, tc := range map[string]struct {
		spec            infrav1.StaticIPConfig
		id              int
		reason, message string
	}{
		"When a subnet is set, it should be used":                     {spec: infrav1.StaticIPConfig{IP: "10.9.0.7", CIDR: "10.9.0.0/24"}, id: 2},
		"When a subnet is set by an address in it, it should be used": {spec: infrav1.StaticIPConfig{IP: "10.9.0.7", CIDR: "10.9.0.5/24"}, id: 2},
		"When no subnet is set, the smallest one should be used":      {spec: infrav1.StaticIPConfig{IP: "10.9.0.7"}, id: 2},
		"When a larger subnet is set, it should be used":              {spec: infrav1.StaticIPConfig{IP: "10.9.0.7", CIDR: "10.0.0.0/8"}, id: 1},
		"When the range is IPv6, its subnet should be found":          {spec: infrav1.StaticIPConfig{Range: ips("fd00::10", "fd00::20"), Gateway: "fd00:0::1"}, id: 3},
		"When the name servers match except for order and notation, the subnet should be accepted": {
			spec: infrav1.StaticIPConfig{IP: "10.9.0.7", Nameservers: []string{"fd00:0:0::53", "10.9.0.2"}}, id: 2},
		"When only some of the subnet's name servers are set, it should return an error": {
			spec: infrav1.StaticIPConfig{IP: "10.9.0.7", Nameservers: []string{"10.9.0.2"}}, reason: staticip.ReasonNameserversMismatch, message: "those of 10.9.0.0/24 are 10.9.0.2, fd00::53"},
		"When the subnet has no name servers, the error should say that machines use MAAS as their DNS server": {
			spec: infrav1.StaticIPConfig{IP: "10.8.0.7", Nameservers: []string{"10.9.0.2"}}, reason: staticip.ReasonNameserversMismatch, message: "none, so that machines ask MAAS"},
		"When the subnet has another name server, the error should name it": {
			spec: infrav1.StaticIPConfig{IP: "fd00::10", Nameservers: []string{"fd00::54"}}, reason: staticip.ReasonNameserversMismatch, message: "those of fd00::/64 are fd00::53:"},
		"When the range starts with an invalid address, it should return an error": {
			spec: infrav1.StaticIPConfig{Range: ips("?", "fd00::1")}, reason: staticip.ReasonInvalid, message: "is not an address or a range"},
		"When the gateway differs, it should return an error":               {spec: infrav1.StaticIPConfig{IP: "10.9.0.7", Gateway: "10.9.0.9"}, reason: staticip.ReasonGatewayMismatch, message: "is 10.9.0.1"},
		"When MAAS lacks the subnet, the error should list all subnets":     {spec: infrav1.StaticIPConfig{IP: "192.0.2.7", CIDR: "192.0.2.0/24"}, reason: staticip.ReasonSubnetNotFound, message: "10.0.0.0/8, 10.9.0.0/24"},
		"When the address is outside the subnet, it should return an error": {spec: infrav1.StaticIPConfig{IP: "10.9.1.7", CIDR: "10.9.0.0/24"}, reason: staticip.ReasonInvalid, message: "outside of subnet 10.9.0.0/24"},
		"When the range extends past the subnet, it should return an error": {
			spec: infrav1.StaticIPConfig{Range: ips("10.9.0.250", "10.9.1.2")}, reason: staticip.ReasonInvalid, message: "10.9.0.250 to 10.9.1.2 lies outside"},
		"When the range is reversed, it should return an error":      {spec: infrav1.StaticIPConfig{Range: ips("10.9.0.9", "10.9.0.2")}, reason: staticip.ReasonInvalid, message: "staticIP.range"},
		"When there is no address, it should return an error":        {spec: infrav1.StaticIPConfig{CIDR: "10.9.0.0/24"}, reason: staticip.ReasonInvalid, message: `staticIP.ip "" is not an address`},
		"When address families are mixed, it should return an error": {spec: infrav1.StaticIPConfig{Range: ips("10.9.0.9", "fd00::1")}, reason: staticip.ReasonInvalid, message: "is not an address or a range"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			subnet, refusal := staticip.Subnet(&tc.spec, site())
			if tc.reason == "" {
				g.Expect(refusal).To(BeNil())
				g.Expect(subnet.ID).To(Equal(tc.id))
				return
			}
			g.Expect(refusal).NotTo(BeNil())
			g.Expect(refusal.Reason).To(Equal(tc.reason))
			g.Expect(refusal.Message).To(ContainSubstring(tc.message))
		})
	}
}

func TestPick(t *testing.T) {
	subnet := &site()[1]
	held := []maas.HeldAddress{
		{IP: "10.9.0.10", Node: &maas.HolderSummary{SystemID: "aaaaaa", Hostname: "one"}},
		{IP: "10.9.0.11", Node: &maas.HolderSummary{SystemID: "mine", Hostname: "me"}},
		{IP: "10.9.0.12", User: "alice"}, {IP: "10.9.0.13"}, {IP: ""},
	}
	ranges := []maas.AddressRange{
		{Type: "dynamic", StartIP: "10.9.0.100", EndIP: "10.9.0.199"}, {Type: "reserved", StartIP: "10.9.0.20", EndIP: "10.9.0.29"},
		{Type: "dynamic", StartIP: "?", EndIP: ""},
	}
	for name, tc := range map[string]struct {
		spec          infrav1.StaticIPConfig
		want          string
		reason, words string
	}{
		"When the address is free, it should be picked":                           {spec: infrav1.StaticIPConfig{IP: "10.9.0.50"}, want: "10.9.0.50"},
		"When the address is in a reserved range, it should be picked":            {spec: infrav1.StaticIPConfig{IP: "10.9.0.20"}, want: "10.9.0.20"},
		"When the machine itself has the address, it should be picked":            {spec: infrav1.StaticIPConfig{IP: "10.9.0.11"}, want: "10.9.0.11"},
		"When another machine has the address, the error should name the machine": {spec: infrav1.StaticIPConfig{IP: "10.9.0.10"}, reason: staticip.ReasonInUse, words: "held by node one (aaaaaa) in MAAS"},
		"When a user has the address, the error should name the user":             {spec: infrav1.StaticIPConfig{IP: "10.9.0.12"}, reason: staticip.ReasonInUse, words: "held by user alice in MAAS"},
		"When the holder of the address is unknown, the error should say so":      {spec: infrav1.StaticIPConfig{IP: "10.9.0.13"}, reason: staticip.ReasonInUse, words: "held by an unknown owner in MAAS"},
		"When a sibling has the address, the error should name the sibling":       {spec: infrav1.StaticIPConfig{IP: "10.9.0.30"}, reason: staticip.ReasonInUse, words: "held by MaasMachine x"},
		"When the address is a name server, the error should say so":              {spec: infrav1.StaticIPConfig{IP: "10.9.0.2"}, reason: staticip.ReasonInUse, words: "a name server"},
		"When the address belongs to DHCP, the error should say so":               {spec: infrav1.StaticIPConfig{IP: "10.9.0.150"}, reason: staticip.ReasonInUse, words: "the dynamic range 10.9.0.100 to 10.9.0.199"},
		"When a range starts with used addresses, it should skip them":            {spec: infrav1.StaticIPConfig{Range: ips("10.9.0.12", "10.9.0.19")}, want: "10.9.0.14"},
		"When a dynamic range overlaps, it should skip the dynamic range":         {spec: infrav1.StaticIPConfig{Range: ips("10.9.0.101", "10.9.0.210")}, want: "10.9.0.200"},
		"When a range starts with the network address, it should skip that address": {
			spec: infrav1.StaticIPConfig{Range: ips("10.9.0.0", "10.9.0.5")}, want: "10.9.0.3"},
		"When only the broadcast address is left, the range should be exhausted": {
			spec: infrav1.StaticIPConfig{Range: ips("10.9.0.255", "10.9.0.255")}, reason: staticip.ReasonRangeExhausted, words: "10.9.0.255 to 10.9.0.255 is free"},
		"When all addresses are used, the error should name some": {spec: infrav1.StaticIPConfig{Range: ips("10.9.0.10", "10.9.0.10")}, reason: staticip.ReasonRangeExhausted,
			words: "(10.9.0.10 is held by node one (aaaaaa) in MAAS): use a larger range"},
		"When a few addresses are used, the error should name all": {spec: infrav1.StaticIPConfig{Range: ips("10.9.0.30", "10.9.0.32")}, reason: staticip.ReasonRangeExhausted,
			words: "10.9.0.31 is held by MaasMachine x, 10.9.0.32 is held by MaasMachine x)"},
		"When many addresses are used, the error should not name all": {spec: infrav1.StaticIPConfig{Range: ips("10.9.0.30", "10.9.0.33")}, reason: staticip.ReasonRangeExhausted,
			words: "10.9.0.32 is held by MaasMachine x, ...)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			taken := staticip.NewTaken(subnet, held, ranges, "mine")
			for _, ip := range []string{"10.9.0.30", "10.9.0.31", "10.9.0.32", "10.9.0.33", ""} {
				taken.Add(ip, "MaasMachine x")
			}
			ip, refusal := staticip.Pick(&tc.spec, subnet, taken)
			g.Expect(ip).To(Equal(tc.want))
			if tc.reason == "" {
				g.Expect(refusal).To(BeNil())
				return
			}
			g.Expect(refusal.Reason).To(Equal(tc.reason))
			g.Expect(refusal.Message).To(ContainSubstring(tc.words))
		})
	}
}

func TestInterface(t *testing.T) {
	subnet := &maas.Subnet{ID: 2, CIDR: "10.9.0.0/24", VLAN: &maas.VLAN{ID: 20}}
	linked := []maas.Link{{ID: 1, Mode: "auto", Subnet: subnet}}
	here, there := &maas.VLAN{ID: 20}, &maas.VLAN{ID: 30}
	nic := func(id int, enabled bool, vlan *maas.VLAN, links []maas.Link) maas.Interface {
		return maas.Interface{ID: id, Name: "nic", Enabled: enabled, VLAN: vlan, Links: links}
	}
	for name, tc := range map[string]struct {
		nics []maas.Interface
		boot int
		want int
	}{
		"When one interface is linked, it should be selected": {nics: []maas.Interface{nic(1, true, here, nil), nic(2, true, here, linked)}, boot: 1, want: 2},
		"When the boot interface is linked to another subnet, the interface on this subnet should be selected": {
			nics: []maas.Interface{nic(1, true, here, []maas.Link{{ID: 2, Mode: "auto", Subnet: &maas.Subnet{ID: 3}}}), nic(2, true, here, linked)}, boot: 1, want: 2},
		"When two interfaces are linked, the boot interface should be selected":                          {nics: []maas.Interface{nic(1, true, here, linked), nic(2, true, here, linked)}, boot: 2, want: 2},
		"When two interfaces are linked and neither is the boot interface, the first should be selected": {nics: []maas.Interface{nic(1, true, here, linked), nic(2, true, here, linked)}, boot: 9, want: 1},
		"When no interface is linked, one on the VLAN should be selected":                                {nics: []maas.Interface{nic(1, true, there, nil), nic(2, true, here, nil)}, want: 2},
		"When the only interface is disabled, none should be selected":                                   {nics: []maas.Interface{nic(1, false, here, linked)}},
		"When no interface is on the VLAN, none should be selected":                                      {nics: []maas.Interface{nic(1, true, there, nil), nic(2, true, nil, nil)}},
		"When the interface on the VLAN is part of a bridge, the bridge should be selected":              {nics: []maas.Interface{nic(1, true, here, nil), {ID: 2, Type: "bridge", Enabled: true, VLAN: here, Parents: []string{"nic"}}}, boot: 1, want: 2},
		"When the interface has a VLAN interface on top, it should still be selected":                    {nics: []maas.Interface{nic(1, true, here, nil), {ID: 2, Type: "vlan", Enabled: true, VLAN: there, Parents: []string{"nic"}}}, boot: 1, want: 1},
		"When the interface on the VLAN is part of a bond, the bond should be selected":                  {nics: []maas.Interface{nic(1, true, here, nil), {ID: 2, Type: "bond", Enabled: true, VLAN: here, Parents: []string{"nic"}}}, boot: 1, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := &maas.Machine{Interfaces: tc.nics, BootInterface: &maas.Interface{ID: tc.boot}}
			got := staticip.Interface(m, subnet)
			if tc.want == 0 {
				NewWithT(t).Expect(got).To(BeNil())
				return
			}
			NewWithT(t).Expect(got).NotTo(BeNil())
			NewWithT(t).Expect(got.ID).To(Equal(tc.want))
		})
	}
}

func TestLinks(t *testing.T) {
	g := NewWithT(t)
	two, three := &maas.Subnet{ID: 2}, &maas.Subnet{ID: 3}
	m := &maas.Machine{IPAddresses: []string{"10.9.0.9", "fd00::9"}, Interfaces: []maas.Interface{
		{ID: 1, Links: []maas.Link{{ID: 1, Mode: "link_up"}}},
		{ID: 2, Links: []maas.Link{
			{ID: 2, Mode: "auto", Subnet: two, IPAddress: "10.9.0.9"}, {ID: 3, Mode: "dhcp", Subnet: two}, {ID: 4, Mode: "auto", Subnet: three},
			{ID: 5, Mode: "static", Subnet: two, IPAddress: "fd00::9"}, {ID: 6, Mode: "link_up"}}},
	}}
	nic, link := staticip.Find(m, "fd00:0::9")
	g.Expect(nic.ID).To(Equal(2))
	g.Expect(link.ID).To(Equal(5))
	_, link = staticip.Find(m, "10.9.0.9")
	g.Expect(link).To(BeNil(), "an automatic link is not static")
	automatic := staticip.Automatic(nic, 2)
	g.Expect(automatic).To(HaveLen(2))
	g.Expect([]int{automatic[0].ID, automatic[1].ID}).To(Equal([]int{2, 3}))
	g.Expect(staticip.Own(m, &infrav1.StaticIPConfig{Range: ips("fd00::1", "fd00::20")})).To(Equal("fd00::9"))
	g.Expect(staticip.Own(m, &infrav1.StaticIPConfig{IP: "10.9.0.9"})).To(BeEmpty())
	g.Expect(staticip.Own(m, &infrav1.StaticIPConfig{IP: "?"})).To(BeEmpty())
}

// TestEdges checks which addresses of a subnet no machine can have. IPv6 has no broadcast address, and a subnet of
// two addresses reserves none.
func TestEdges(t *testing.T) {
	for name, tc := range map[string]struct{ cidr, first, want string }{
		"When the subnet is IPv4, its first address should not be picked":              {"10.9.0.0/30", "10.9.0.0", "10.9.0.1"},
		"When the subnet is a point-to-point link, its first address should be picked": {"10.9.0.0/31", "10.9.0.0", "10.9.0.0"},
		"When the subnet is IPv6, its first address should be picked":                  {"fd00::/64", "fd00::", "fd00::"},
		"When the subnet is a large IPv6 network, its first address should be picked":  {"fd00::/28", "fd00::", "fd00::"},
		"When the subnet's CIDR is unreadable, the range should be used as it is":      {"?", "10.9.0.0", "10.9.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			subnet := &maas.Subnet{ID: 7, CIDR: tc.cidr}
			last := tc.first
			if tc.want != tc.first {
				last = tc.want
			}
			ip, refusal := staticip.Pick(&infrav1.StaticIPConfig{Range: ips(tc.first, last)}, subnet, staticip.NewTaken(subnet, nil, nil, "mine"))
			g.Expect(refusal).To(BeNil())
			g.Expect(ip).To(Equal(tc.want))
		})
	}
}

func TestUnknownSubnet(t *testing.T) {
	subnets := func(n int) []maas.Subnet {
		var all []maas.Subnet
		for i := range n {
			all = append(all, maas.Subnet{ID: i, CIDR: fmt.Sprintf("10.1.%02d.0/24", 10+i)})
		}
		return all
	}
	g := NewWithT(t)
	spec := &infrav1.StaticIPConfig{IP: "172.16.0.9", CIDR: "172.16.0.0/24"}
	_, refusal := staticip.Subnet(spec, subnets(10))
	g.Expect(refusal.Message).To(HavePrefix("MAAS has no subnet 172.16.0.0/24, it has: 10.1.10.0/24, 10.1.11.0/24, "))
	g.Expect(refusal.Message).To(ContainSubstring("10.1.19.0/24; add it"), "ten are told")
	_, refusal = staticip.Subnet(spec, subnets(11))
	g.Expect(refusal.Message).To(ContainSubstring("10.1.19.0/24, ...; add it"), "and no more")
}

func TestGatewayThatMAASDoesNotHave(t *testing.T) {
	g := NewWithT(t)
	spec := &infrav1.StaticIPConfig{IP: "10.9.0.9", Gateway: "10.9.0.1"}
	_, refusal := staticip.Subnet(spec, []maas.Subnet{{ID: 1, CIDR: "10.9.0.0/24"}})
	g.Expect(refusal.Message).To(ContainSubstring("that of 10.9.0.0/24 is none: set the subnet's in MAAS"))
	_, refusal = staticip.Subnet(spec, []maas.Subnet{{ID: 1, CIDR: "10.9.0.0/24", GatewayIP: "10.9.0.254"}})
	g.Expect(refusal.Message).To(ContainSubstring("that of 10.9.0.0/24 is 10.9.0.254: set the subnet's in MAAS"))
}

// TestRangeThatIsTold checks that a message names the configured range, whatever field it comes from.
func TestRangeThatIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		spec infrav1.StaticIPConfig
		want string
	}{
		"When a range is invalid, the error should name its field":    {infrav1.StaticIPConfig{Range: ips("10.9.0.9", "?")}, "staticIP.range 10.9.0.9 to ? is not an address or a range of addresses: make another machine or template with one"},
		"When an address is invalid, the error should name its field": {infrav1.StaticIPConfig{IP: "10.9.0.300"}, `staticIP.ip "10.9.0.300" is not an address or a range of addresses: make another machine or template with one`},
		"When no subnet contains the range, the error should name the range": {infrav1.StaticIPConfig{Range: ips("172.16.0.1", "172.16.0.2")},
			"MAAS has no subnet for 172.16.0.1 to 172.16.0.2, it has: 10.0.0.0/8, 10.9.0.0/24, fd00::/64, unreadable; add it in MAAS, or make another machine or template"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			subnets := site()
			slices.Reverse(subnets) // MAAS does not sort subnets.
			subnet, refusal := staticip.Subnet(&tc.spec, subnets)
			g.Expect(subnet).To(BeNil())
			g.Expect(refusal.Message).To(Equal(tc.want))
			ip, refusal := staticip.Pick(&tc.spec, &site()[1], staticip.NewTaken(&site()[1], nil, nil, ""))
			if refusal != nil {
				g.Expect(ip).To(BeEmpty(), "who is refused has no address")
			}
		})
	}
}

// TestWholeSubnetTaken checks that Pick rejects a large taken range immediately. It skips each range of taken
// addresses in one step.
func TestWholeSubnetTaken(t *testing.T) {
	g := NewWithT(t)
	subnet := &maas.Subnet{ID: 9, CIDR: "fd00::/64"}
	taken := staticip.NewTaken(subnet, nil, []maas.AddressRange{{Type: "dynamic", StartIP: "fd00::", EndIP: "fd00::ffff:ffff:ffff:ffff"}}, "")
	ip, refusal := staticip.Pick(&infrav1.StaticIPConfig{Range: ips("fd00::1", "fd00::ffff:ffff:ffff:fffe")}, subnet, taken)
	g.Expect(ip).To(BeEmpty())
	g.Expect(refusal.Reason).To(Equal(staticip.ReasonRangeExhausted))
	taken = staticip.NewTaken(subnet, nil, []maas.AddressRange{{Type: "dynamic", StartIP: "fd00::", EndIP: "fd00::ffff:ffff:ffff:fffd"}}, "")
	ip, _ = staticip.Pick(&infrav1.StaticIPConfig{Range: ips("fd00::1", "fd00::ffff:ffff:ffff:fffe")}, subnet, taken)
	g.Expect(ip).To(Equal("fd00::ffff:ffff:ffff:fffe"), "the last one is free")
}

// TestEndOfAddresses checks that the search ends after the last possible address.
func TestEndOfAddresses(t *testing.T) {
	g := NewWithT(t)
	subnet := &maas.Subnet{ID: 9, CIDR: "255.255.255.0/24"}
	_, refusal := staticip.Pick(&infrav1.StaticIPConfig{Range: ips("255.255.255.255", "255.255.255.255")}, subnet, staticip.NewTaken(subnet, nil, nil, ""))
	g.Expect(refusal).NotTo(BeNil())
	g.Expect(refusal.Reason).To(Equal(staticip.ReasonRangeExhausted))
}

// TestSubnetThatIsNotAligned checks a subnet that MAAS returns with host bits set. Its name and its reserved addresses
// come from the masked subnet.
func TestSubnetThatIsNotAligned(t *testing.T) {
	g := NewWithT(t)
	subnets := []maas.Subnet{{ID: 5, CIDR: "10.9.0.7/24"}}
	subnet, refusal := staticip.Subnet(&infrav1.StaticIPConfig{IP: "10.9.0.9", CIDR: "10.9.0.0/24"}, subnets)
	g.Expect(refusal).To(BeNil())
	g.Expect(subnet.ID).To(Equal(5))
	ip, _ := staticip.Pick(&infrav1.StaticIPConfig{Range: ips("10.9.0.0", "10.9.0.2")}, subnet, staticip.NewTaken(subnet, nil, nil, ""))
	g.Expect(ip).To(Equal("10.9.0.1"), "the first address of the subnet is nobody's")
}

// TestLaterHolderCounts checks that a later owner of an address replaces an earlier one.
func TestLaterHolderCounts(t *testing.T) {
	g := NewWithT(t)
	subnet := &site()[1]
	taken := staticip.NewTaken(subnet, []maas.HeldAddress{{IP: "10.9.0.50", User: "alice"}, {IP: "fd00:0:0::50", User: "bob"}}, nil, "")
	taken.Add("10.9.0.50", "MaasMachine x")
	_, refusal := staticip.Pick(&infrav1.StaticIPConfig{IP: "10.9.0.50"}, subnet, taken)
	g.Expect(refusal.Message).To(HavePrefix("10.9.0.50 is held by MaasMachine x: "))
	_, refusal = staticip.Pick(&infrav1.StaticIPConfig{IP: "fd00::50"}, subnet, taken)
	g.Expect(refusal.Message).To(HavePrefix("fd00::50 is held by user bob in MAAS: "), "however MAAS spells it")
}
