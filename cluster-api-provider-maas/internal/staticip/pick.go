// SPDX-License-Identifier: Apache-2.0

package staticip

import (
	"fmt"
	"net/netip"
	"strings"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// holdersTold is the maximum number of address owners in a message.
const holdersTold = 3

// surge is a hint for a message, since users often overlook it.
const surge = "a machine that is made before the one that it replaces is gone (maxSurge) needs an address of its own"

// Taken holds the addresses of a subnet that are not available.
type Taken struct {
	holders map[netip.Addr]string
	dynamic []span
}

// NewTaken builds the set of unavailable addresses from MAAS data. Addresses of the machine with the given system ID
// are available; the ID is empty if there is no machine yet. Reserved ranges of MAAS are available: MAAS does not
// assign addresses there automatically, so they are the place for chosen addresses.
func NewTaken(subnet *maas.Subnet, held []maas.HeldAddress, ranges []maas.AddressRange, systemID string) *Taken {
	t := &Taken{holders: map[netip.Addr]string{}}
	t.Add(subnet.GatewayIP, "the subnet's gateway")
	for _, server := range subnet.DNSServers {
		t.Add(server, "a name server of the subnet")
	}
	for _, h := range held {
		switch {
		case h.Node == nil:
			t.Add(h.IP, holder("user", h.User))
		case systemID == "" || h.Node.SystemID != systemID:
			t.Add(h.IP, holder("node", fmt.Sprintf("%s (%s)", h.Node.Hostname, h.Node.SystemID)))
		}
	}
	for _, r := range ranges {
		first, err1 := netip.ParseAddr(r.StartIP)
		last, err2 := netip.ParseAddr(r.EndIP)
		if r.Type == "dynamic" && err1 == nil && err2 == nil {
			t.dynamic = append(t.dynamic, span{first, last})
		}
	}
	return t
}

func holder(kind, name string) string {
	if name == "" {
		return "an unknown owner in MAAS"
	}
	return fmt.Sprintf("%s %s in MAAS", kind, name)
}

// Add records the owner of an address and replaces an earlier owner. An invalid address is ignored.
func (t *Taken) Add(ip, holder string) {
	if addr, err := netip.ParseAddr(ip); err == nil {
		t.holders[addr] = holder
	}
}

// by returns the owner of an address and the end of a contiguous range with the same owner; the owner is empty if the
// address is free.
func (t *Taken) by(ip netip.Addr) (holder string, until netip.Addr) {
	if holder, ok := t.holders[ip]; ok {
		return holder, ip
	}
	for _, s := range t.dynamic {
		if s.has(ip) {
			return fmt.Sprintf("the dynamic range %s to %s of the subnet", s.first, s.last), s.last
		}
	}
	return "", ip
}

// Pick returns the first free address that the spec permits.
func Pick(spec *infrav1.StaticIPConfig, subnet *maas.Subnet, taken *Taken) (string, *Refusal) {
	run, refusal := wanted(spec)
	if refusal != nil {
		return "", refusal
	}
	var told []string
	edges := edgesOf(subnet.CIDR)
	for ip := run.first; run.has(ip); ip = ip.Next() {
		who, until := taken.by(ip)
		if who == "" && (spec.Range == nil || !edges[ip]) {
			return ip.String(), nil
		}
		if who != "" {
			told = append(told, fmt.Sprintf("%s is held by %s", ip, who))
		}
		ip = until
	}
	if spec.Range == nil {
		return "", refuse(ReasonInUse, "%s: free it, or make another machine or template with another address; %s", strings.Join(told, ""), surge)
	}
	if len(told) > holdersTold {
		told = append(told[:holdersTold], "...")
	}
	return "", refuse(ReasonRangeExhausted, "no address of staticIP.range %s is free (%s): use a larger range, or free addresses; %s",
		Text(spec), strings.Join(told, ", "), surge)
}

// edgesOf returns the first and the last address of an IPv4 subnet, which no machine can use.
func edgesOf(cidr string) map[netip.Addr]bool {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil || !prefix.Addr().Is4() || prefix.Bits() > 30 {
		return nil
	}
	first := prefix.Masked().Addr()
	last := first.As4()
	for bit := prefix.Bits(); bit < 32; bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	return map[netip.Addr]bool{first: true, netip.AddrFrom4(last): true}
}
