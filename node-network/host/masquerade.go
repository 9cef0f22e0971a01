// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/klog/v2"
)

// multicast is never given another source address.
var multicast = []netip.Prefix{netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8")}

// Rule says what happens to packets that leave the node.
type Rule struct {
	// From are the packets' sources.
	From netip.Prefix
	// To are their destinations; the zero value is all.
	To netip.Prefix
	// Masquerade gives them the node's address; otherwise they stay as they are, and later rules do not see them.
	Masquerade bool
}

// PacketFilter is the kernel's table of rules that is the agent's own; no other program's rules are in it.
type PacketFilter interface {
	// Write replaces the whole table at once: no packet sees half of it.
	Write(rules []Rule) error
	// Read returns what tells two contents of the table apart.
	Read() (string, error)
}

// Masquerade gives what this node's pods send out of the cluster the node's address.
type Masquerade struct {
	// Filter is the kernel's.
	Filter PacketFilter

	// written are the rules that were written last, and read what the kernel then said the table was.
	written []Rule
	read    string
}

// Ensure writes the rules if they are others than before or if somebody changed the table.
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

// rulesOf lets what stays in the cluster pass, for each range of pods, and masquerades the rest.
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
