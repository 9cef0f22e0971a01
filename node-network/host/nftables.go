// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	tableName = "hypershift-node-network"
	chainName = "postrouting"
	register  = 1
)

// NFTables is the kernel's PacketFilter. It uses netlink, so it needs no program.
type NFTables struct{}

func table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
}

func chain() *nftables.Chain {
	return &nftables.Chain{
		Table: table(), Name: chainName, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	}
}

// Write implements PacketFilter. It first creates the table, so that deleting it never fails.
func (NFTables) Write(rules []Rule) error {
	connection, err := nftables.New()
	if err != nil {
		return err
	}
	connection.AddTable(table())
	connection.DelTable(table())
	connection.AddTable(table())
	connection.AddChain(chain())
	for _, rule := range rules {
		connection.AddRule(&nftables.Rule{Table: table(), Chain: chain(), Exprs: rule.expressions()})
	}
	return connection.Flush()
}

// Read implements PacketFilter.
func (NFTables) Read() (string, error) {
	connection, err := nftables.New()
	if err != nil {
		return "", err
	}
	found, err := connection.GetRules(table(), chain())
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, rule := range found {
		for _, expression := range rule.Exprs {
			content, err := json.Marshal(expression)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "%T%s ", expression, content)
		}
		text.WriteString("\n")
	}
	return text.String(), nil
}

// family describes the IP header of an address family: the family's number, and the offsets of source and destination,
// in bytes (RFC 791, RFC 8200).
type family struct {
	number              byte
	source, destination uint32
}

func familyOf(prefix netip.Prefix) family {
	if prefix.Addr().Is4() {
		return family{unix.NFPROTO_IPV4, 12, 16}
	}
	return family{unix.NFPROTO_IPV6, 8, 24}
}

func (r Rule) expressions() []expr.Any {
	f := familyOf(r.From)
	all := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: register},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{f.number}},
	}
	all = append(all, within(r.From, f.source)...)
	if r.To.IsValid() {
		all = append(all, within(r.To, f.destination)...)
	}
	if r.Masquerade {
		return append(all, &expr.Masq{})
	}
	return append(all, &expr.Verdict{Kind: expr.VerdictReturn})
}

// within returns expressions that compare the address at an offset of the header with a prefix.
func within(prefix netip.Prefix, offset uint32) []expr.Any {
	address := prefix.Masked().Addr().AsSlice()
	size := uint32(prefix.Addr().BitLen() / 8) //nolint:gosec // 4 or 16
	return []expr.Any{
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: size, Mask: net.CIDRMask(prefix.Bits(), len(address)*8), Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: address},
	}
}
