// SPDX-License-Identifier: Apache-2.0

// Package staticip chooses the address of a machine, its subnet in MAAS and its interface. All functions are pure.
package staticip

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// Condition reasons.
const (
	ReasonInvalid             = infrav1.StaticIPInvalidReason
	ReasonSubnetNotFound      = infrav1.SubnetNotFoundReason
	ReasonGatewayMismatch     = infrav1.StaticIPGatewayMismatchReason
	ReasonNameserversMismatch = infrav1.StaticIPNameserversMismatchReason
	ReasonInUse               = infrav1.StaticIPInUseReason
	ReasonRangeExhausted      = infrav1.StaticIPRangeExhaustedReason
)

// Refusal holds the reason why an address is not available, and a message with the remedy.
type Refusal struct{ Reason, Message string }

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// span is a range of addresses, both ends included.
type span struct{ first, last netip.Addr }

func (s span) has(ip netip.Addr) bool { return !ip.Less(s.first) && !s.last.Less(ip) }

func (s span) hasText(ip string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && s.has(addr)
}

// wanted returns the range of addresses that a spec permits, which may be a single address.
func wanted(spec *infrav1.StaticIPConfig) (span, *Refusal) {
	first, last, field := spec.IP, spec.IP, "staticIP.ip"
	if spec.Range != nil {
		first, last, field = spec.Range.Start, spec.Range.End, "staticIP.range"
	}
	from, err1 := netip.ParseAddr(first)
	to, err2 := netip.ParseAddr(last)
	if err1 != nil || err2 != nil || to.Less(from) || from.Is4() != to.Is4() {
		return span{}, refuse(ReasonInvalid, "%s %s is not an address or a range of addresses: make another machine or template with one", field, Text(spec))
	}
	return span{from, to}, nil
}

// Text formats the addresses that a spec permits: "10.0.0.7", or "10.0.0.7 to 10.0.0.9".
func Text(spec *infrav1.StaticIPConfig) string {
	if spec.Range != nil {
		return fmt.Sprintf("%s to %s", spec.Range.Start, spec.Range.End)
	}
	return fmt.Sprintf("%q", spec.IP)
}

// Subnet returns the subnet of an address in MAAS, and checks the gateway and the name servers of the spec. They must
// equal the subnet's own, since MAAS supports no others for a machine.
func Subnet(spec *infrav1.StaticIPConfig, subnets []maas.Subnet) (*maas.Subnet, *Refusal) {
	run, refusal := wanted(spec)
	if refusal != nil {
		return nil, refusal
	}
	subnet := find(spec.CIDR, run, subnets)
	if subnet == nil {
		what := spec.CIDR
		if what == "" {
			what = "for " + Text(spec)
		}
		return nil, refuse(ReasonSubnetNotFound, "MAAS has no subnet %s, it has: %s; add it in MAAS, or make another machine or template", what, names(subnets))
	}
	if cidr, err := netip.ParsePrefix(subnet.CIDR); err != nil || !cidr.Contains(run.first) || !cidr.Contains(run.last) {
		return nil, refuse(ReasonInvalid, "staticIP %s lies outside of subnet %s: make another machine or template with an address of it", Text(spec), subnet.CIDR)
	}
	if refusal := gateway(spec, subnet); refusal != nil {
		return nil, refusal
	}
	return subnet, nameservers(spec, subnet)
}

// find returns the named subnet, else the smallest one that contains the first address.
func find(name string, run span, subnets []maas.Subnet) *maas.Subnet {
	var best *maas.Subnet
	bits := -1
	named, err := netip.ParsePrefix(name)
	for i := range subnets {
		cidr, parseErr := netip.ParsePrefix(subnets[i].CIDR)
		switch {
		case parseErr != nil:
		case name != "":
			if err == nil && cidr.Masked() == named.Masked() {
				return &subnets[i]
			}
		case cidr.Contains(run.first) && cidr.Bits() > bits:
			best, bits = &subnets[i], cidr.Bits()
		}
	}
	return best
}

func names(subnets []maas.Subnet) string {
	all := make([]string, 0, len(subnets))
	for _, s := range subnets {
		all = append(all, s.CIDR)
	}
	slices.Sort(all)
	if len(all) > 10 {
		all = append(all[:10], "...")
	}
	return strings.Join(all, ", ")
}

func gateway(spec *infrav1.StaticIPConfig, subnet *maas.Subnet) *Refusal {
	if spec.Gateway == "" || same(spec.Gateway, subnet.GatewayIP) {
		return nil
	}
	has := "none"
	if subnet.GatewayIP != "" {
		has = subnet.GatewayIP
	}
	return refuse(ReasonGatewayMismatch, "staticIP.gateway is %s, but MAAS gives machines the gateway of their subnet, and that of %s is %s: "+
		"set the subnet's in MAAS, or leave staticIP.gateway empty", spec.Gateway, subnet.CIDR, has)
}

func nameservers(spec *infrav1.StaticIPConfig, subnet *maas.Subnet) *Refusal {
	unknown := func(server string) bool {
		return !slices.ContainsFunc(subnet.DNSServers, func(has string) bool { return same(has, server) })
	}
	if len(spec.Nameservers) == 0 || len(spec.Nameservers) == len(subnet.DNSServers) && !slices.ContainsFunc(spec.Nameservers, unknown) {
		return nil
	}
	has := "none, so that machines ask MAAS"
	if len(subnet.DNSServers) > 0 {
		has = strings.Join(subnet.DNSServers, ", ")
	}
	return refuse(ReasonNameserversMismatch, "staticIP.nameservers are %s, but MAAS gives machines the name servers of their subnet, and those of %s are %s: "+
		"set the subnet's in MAAS, or leave staticIP.nameservers empty", strings.Join(spec.Nameservers, ", "), subnet.CIDR, has)
}

// same reports whether two addresses are equal. IPv6 addresses have several notations.
func same(a, b string) bool {
	x, err1 := netip.ParseAddr(a)
	y, err2 := netip.ParseAddr(b)
	return err1 == nil && err2 == nil && x == y
}
