// SPDX-License-Identifier: Apache-2.0

// Package addressguard restricts clients that connect to addresses chosen by a tenant. It blocks addresses that the
// tenant cannot reach without the client.
package addressguard

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// never lists the addresses that no tenant service uses: the host itself, its link, and the metadata services of
// clouds.
var never = mustPrefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "100.100.100.200/32", "192.0.0.192/32",
	"::/128", "::1/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd20:ce::254/128",
)

// embedding lists the IPv6 ranges that embed an IPv4 address in their last four bytes.
var embedding = mustPrefixes("64:ff9b::/96", "::/96")

// Guard blocks connections to addresses that a tenant cannot reach, for clients whose endpoint the tenant chooses.
// Guard allows private networks, because MAAS, object stores and other clusters are there.
type Guard struct {
	// Allow lists ranges that are always allowed. Refuse lists ranges that are blocked in addition to the addresses that
	// no tenant service uses. Allow takes precedence over the other fields.
	Allow, Refuse []netip.Prefix
	// RefuseAt lists single ports that are blocked, such as the port of the management cluster's API server.
	RefuseAt []netip.AddrPort
	// Own holds addresses of the management cluster, which are blocked too; nil holds none.
	Own Own
}

// Own is a set of addresses.
type Own interface {
	// Contains reports whether the set contains an address.
	Contains(at netip.AddrPort) bool
}

// RefusedError reports that a Guard blocked a connection. It does not reveal the address that a name resolves to.
type RefusedError struct{}

// Error names the kinds of addresses that are blocked. The caller adds the flag with which an administrator allows
// them.
func (*RefusedError) Error() string {
	return "its address is blocked by the address policy " +
		"(the host, its link, metadata services, or the management cluster)"
}

// check returns an error for a blocked address. It sees the resolved address of the connection, so a name that changes
// its address after an earlier check cannot bypass it.
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

// Control implements the Control hook of net.Dialer; a nil Guard allows every address.
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

// plain returns an address without its zone. It returns the embedded IPv4 address of an IPv6 address that has one.
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

// New parses lists of ranges such as "10.0.0.0/8,fd00::/8". In a pod, the Guard also blocks the API of the cluster in
// which the pod runs. It blocks the addresses of the management cluster if EnvFile names their file.
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
	if file := os.Getenv(EnvFile); file != "" {
		guard.Own = File(file)
	}
	return guard, nil
}

// ForRegistries returns the Guard for the registries of a program in a hosted namespace. A registry may be a Service, a
// pod or a port of a node, so addresses of the management cluster are allowed, except its API. NetworkPolicies block
// pods and Services of other namespaces.
func ForRegistries() (*Guard, error) {
	guard, err := New("", "")
	if err != nil {
		return nil, err
	}
	guard.Own = nil
	return guard, nil
}

// ParsePrefixes parses comma-separated ranges; an empty text has none.
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
