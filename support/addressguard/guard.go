// SPDX-License-Identifier: Apache-2.0

// Package addressguard keeps a client that calls an address of a tenant's choice from calling what the tenant cannot
// reach.
package addressguard

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// never are the addresses that no service of a tenant has: the host itself, its link, and the metadata services of
// clouds.
var never = mustPrefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "100.100.100.200/32", "192.0.0.192/32",
	"::/128", "::1/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd20:ce::254/128",
)

// embedding are the IPv6 ranges that stand for an IPv4 address, which is in their last four bytes.
var embedding = mustPrefixes("64:ff9b::/96", "::/96")

// Guard keeps a client that calls an endpoint of a tenant's choice from calling what the tenant cannot reach. Private
// networks are allowed, since MAAS, object stores and other clusters are there.
type Guard struct {
	// Allow are ranges that are called whatever else is said. Refuse are ranges that are not called, beside the
	// addresses that no service of a tenant has.
	Allow, Refuse []netip.Prefix
	// RefuseAt are single ports that are not called, such as that of the management cluster's API.
	RefuseAt []netip.AddrPort
	// Own knows addresses of the management cluster, which are not called either; nil knows none.
	Own Own
}

// Own knows addresses.
type Own interface {
	// Contains reports whether an address is known.
	Contains(at netip.AddrPort) bool
}

// RefusedError reports a call that a Guard stopped before it left. It doesn't tell the address that a name stands for.
type RefusedError struct{}

// Error says which addresses are refused. The caller adds the flag by which an administrator allows them.
func (*RefusedError) Error() string {
	return "its address is blocked by the address policy " +
		"(the host, its link, metadata services, or the management cluster)"
}

// check refuses an address. It is asked about the address that a connection is about to go to, after names were
// resolved, so that a name which changes its address in between gains nothing.
func (g *Guard) check(at netip.AddrPort) error {
	address := plain(at.Addr())
	switch {
	case contains(g.Allow, address):
		return nil
	case contains(never, address), contains(g.Refuse, address),
		g.Own != nil && g.Own.Contains(netip.AddrPortFrom(address, at.Port())):
		return &RefusedError{}
	}
	for _, refused := range g.RefuseAt {
		if plain(refused.Addr()) == address && refused.Port() == at.Port() {
			return &RefusedError{}
		}
	}
	return nil
}

// Control implements the hook of net.Dialer of that name; a nil Guard refuses nothing.
func (g *Guard) Control(_, address string, _ syscall.RawConn) error {
	if g == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{}
	}
	return g.check(at)
}

// plain is an address without a zone, and the IPv4 one that an IPv6 one stands for.
func plain(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if contains(embedding, address) && address != netip.IPv6Loopback() && address != netip.IPv6Unspecified() {
		b := address.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return address
}

func contains(prefixes []netip.Prefix, address netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// New reads lists of ranges such as "10.0.0.0/8,fd00::/8". In a pod, it refuses the API of the cluster that the pod
// is in.
func New(allow, refuse string) (*Guard, error) {
	allowed, err := ParsePrefixes(allow)
	if err != nil {
		return nil, err
	}
	refused, err := ParsePrefixes(refuse)
	if err != nil {
		return nil, err
	}
	guard := &Guard{Allow: allowed, Refuse: refused}
	at, err := netip.ParseAddrPort(net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"),
		os.Getenv("KUBERNETES_SERVICE_PORT")))
	if err == nil {
		guard.RefuseAt = append(guard.RefuseAt, at)
	}
	return guard, nil
}

// ParsePrefixes reads ranges that are separated by commas; an empty text is none.
func ParsePrefixes(text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not a range: write it as in 10.0.0.0/8", part)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

func mustPrefixes(texts ...string) []netip.Prefix {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}
