// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/klog/v2"
)

// multicast destinations are never masqueraded.
var multicast = []netip.Prefix{netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8")}

// Rule defines the treatment of packets that leave the node.
type Rule struct {
	// From is the network of the packets' sources.
	From netip.Prefix
	// To is the network of their destinations; the zero value matches all.
	To netip.Prefix
	// Masquerade translates the source address to the node's address. Otherwise the packets are unchanged, and later rules
	// do not apply to them.
	Masquerade bool
}

// PacketFilter is the agent's own table of rules in the kernel. It contains no rules of other programs.
type PacketFilter interface {
	// Write replaces the complete table at once, so that no packet is filtered by a partial table.
	Write(rules []Rule) error
	// Read returns a text that changes with the content of the table.
	Read() (string, error)
}

// Masquerade translates the source address of this node's pod traffic that leaves the cluster to the node's address.
type Masquerade struct {
	// Filter is the kernel's packet filter.
	Filter PacketFilter

	// written are the last written rules, and read is the table's content that the kernel returned then.
	written []Rule
	read    string
}

// Ensure writes the rules if they differ from the last ones, or if another program changed the table.
func (m *Masquerade) Ensure(pods, cluster []netip.Prefix) error {
	rules := rulesOf(pods, cluster)
	if m.written != nil && slices.Equal(rules, m.written) {
		if now, err := m.Filter.Read(); err == nil && now == m.read {
			return nil
		}
	}
	klog.InfoS("writing the packet filter rules", "table", tableName, "pods", pods, "cluster", cluster)
	if err := m.Filter.Write(rules); err != nil {
		return fmt.Errorf("writing the packet filter table %s: %w", tableName, err)
	}
	read, err := m.Filter.Read()
	if err != nil {
		return fmt.Errorf("reading the packet filter table %s: %w", tableName, err)
	}
	m.written, m.read = rules, read
	return nil
}

// rulesOf returns rules for each pod network. They leave traffic within the cluster unchanged and masquerade the rest.
func rulesOf(pods, cluster []netip.Prefix) []Rule {
	rules := []Rule{}
	for _, from := range sorted(pods) {
		for _, to := range sorted(slices.Concat(cluster, multicast)) {
			if from.Addr().Is4() == to.Addr().Is4() {
				rules = append(rules, Rule{From: from, To: to})
			}
		}
		rules = append(rules, Rule{From: from, Masquerade: true})
	}
	return rules
}

func sorted(prefixes []netip.Prefix) []netip.Prefix {
	return slices.Compact(slices.SortedFunc(slices.Values(prefixes), netip.Prefix.Compare))
}
