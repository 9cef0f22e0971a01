// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"math/big"
	"net/netip"
	"slices"
)

// Span is a range of addresses, including both ends. Purposes are the reasons why the addresses are in use.
type Span struct {
	Start, End netip.Addr
	Purposes   []string
}

// Size returns the number of addresses, with the precision of a float64.
func (s Span) Size() float64 {
	start, end := new(big.Int).SetBytes(s.Start.AsSlice()), new(big.Int).SetBytes(s.End.AsSlice())
	size, _ := new(big.Float).SetInt(end.Sub(end, start)).Float64()
	return size + 1
}

// Hosts returns the addresses of a subnet that machines can have.
func (s *Subnet) Hosts() Span {
	cidr, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return Span{}
	}
	first := cidr.Masked().Addr()
	raw := first.AsSlice()
	for bit := cidr.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(raw)
	if len(raw)*8-cidr.Bits() <= 1 {
		return Span{Start: first, End: last}
	}
	if first.Is4() {
		last = last.Prev()
	}
	return Span{Start: first.Next(), End: last}
}

// Taken returns the addresses of a subnet that are in use, sorted by the first address. Spans may overlap.
func (db *DB) Taken(s *Subnet) []Span {
	hosts := s.Hosts()
	var out []Span
	add := func(start, end, purpose string) {
		from, err1 := netip.ParseAddr(start)
		to, err2 := netip.ParseAddr(end)
		if err1 == nil && err2 == nil && !to.Less(hosts.Start) && !hosts.End.Less(from) {
			out = append(out, Span{Start: from, End: to, Purposes: []string{purpose}})
		}
	}
	for _, r := range db.Ranges.All() {
		if r.SubnetID == s.ID {
			add(r.Start, r.End, r.Type)
		}
	}
	add(s.Gateway, s.Gateway, "gateway-ip")
	for _, server := range s.DNSServers {
		add(server, server, "dns-server")
	}
	for _, a := range db.Addresses.All() {
		add(a.IP, a.IP, "assigned-ip")
	}
	for _, m := range db.Machines.All() {
		for _, ip := range m.IPs() {
			add(ip, ip, "assigned-ip")
		}
	}
	slices.SortStableFunc(out, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return out
}

// Merge merges adjacent and overlapping spans for which together returns true.
func Merge(in []Span, together func(a, b Span) bool) []Span {
	var out []Span
	for _, s := range in {
		if n := len(out); n > 0 && !out[n-1].End.Next().Less(s.Start) && together(out[n-1], s) {
			if out[n-1].End.Less(s.End) {
				out[n-1].End = s.End
			}
			out[n-1].Purposes = append(slices.Clone(out[n-1].Purposes), s.Purposes...)
			continue
		}
		out = append(out, s)
	}
	for i := range out {
		slices.Sort(out[i].Purposes)
		out[i].Purposes = slices.Compact(out[i].Purposes)
	}
	return out
}

// Free returns the addresses that MAAS may assign: the gaps between the addresses in use. In an unmanaged subnet, these
// are the gaps in its reserved ranges.
func (db *DB) Free(s *Subnet) []Span {
	if s.Managed {
		return gaps(s.Hosts(), db.Taken(s))
	}
	var out []Span
	held := slices.DeleteFunc(db.Taken(s), func(t Span) bool { return slices.Contains(t.Purposes, "reserved") })
	for _, r := range db.Ranges.All() {
		start, err1 := netip.ParseAddr(r.Start)
		end, err2 := netip.ParseAddr(r.End)
		if r.SubnetID == s.ID && r.Type == "reserved" && err1 == nil && err2 == nil {
			out = append(out, gaps(Span{Start: start, End: end}, held)...)
		}
	}
	return out
}

// gaps returns the parts of within that no span in taken covers. taken must be sorted.
func gaps(within Span, taken []Span) []Span {
	next := within.Start
	var out []Span
	for _, t := range taken {
		if within.End.Less(t.Start) {
			break
		}
		if next.IsValid() && next.Less(t.Start) {
			out = append(out, Span{Start: next, End: t.Start.Prev()})
		}
		if after := t.End.Next(); !next.IsValid() || !after.Less(next) {
			next = after
		}
	}
	if next.IsValid() && !within.End.Less(next) {
		out = append(out, Span{Start: next, End: within.End})
	}
	return out
}
