package host

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// table is the agent's own; no other program's rules are in it.
const table = "inet hypershift-node-network"

// Masquerade is an nftables table which gives what this node's pods send out of the cluster the node's address.
type Masquerade struct {
	// Run runs a script of nft and returns what it printed.
	Run func(ctx context.Context, script string) (string, error)

	// applied is the script that was run last, and listed what the kernel then said the table was.
	applied, listed string
}

// Ensure runs the script if it is another than before or if somebody changed the table.
func (m *Masquerade) Ensure(ctx context.Context, pods, cluster []netip.Prefix) error {
	script := masqueradeScript(pods, cluster)
	if script == m.applied {
		if now, err := m.list(ctx); err == nil && now == m.listed {
			return nil
		}
	}
	klog.InfoS("writing the packet filter rules", "table", table, "pods", pods, "cluster", cluster)
	if _, err := m.Run(ctx, script); err != nil {
		return fmt.Errorf("writing the packet filter table %s: %w", table, err)
	}
	listed, err := m.list(ctx)
	if err != nil {
		return fmt.Errorf("reading the packet filter table %s: %w", table, err)
	}
	m.applied, m.listed = script, listed
	return nil
}

func (m *Masquerade) list(ctx context.Context) (string, error) {
	return m.Run(ctx, "list table "+table+"\n")
}

// masqueradeScript replaces the whole table in one transaction: no packet sees half of it.
func masqueradeScript(pods, cluster []netip.Prefix) string {
	var script strings.Builder
	fmt.Fprintf(&script, "table %s {}\ndelete table %s\n", table, table)
	fmt.Fprintf(&script, "table %s {\n  chain postrouting {\n    type nat hook postrouting priority srcnat; policy accept;\n", table)
	for _, family := range []struct {
		match, multicast string
		is4              bool
	}{{"ip", "224.0.0.0/4", true}, {"ip6", "ff00::/8", false}} {
		from, within := ofFamily(pods, family.is4), ofFamily(cluster, family.is4)
		if len(from) > 0 {
			fmt.Fprintf(&script, "    %s saddr %s %s daddr != %s masquerade\n", family.match, set(from), family.match, set(append(within, family.multicast)))
		}
	}
	script.WriteString("  }\n}\n")
	return script.String()
}

func ofFamily(prefixes []netip.Prefix, is4 bool) []string {
	var texts []string
	for _, prefix := range prefixes {
		if prefix.Addr().Is4() == is4 {
			texts = append(texts, prefix.String())
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

func set(texts []string) string { return "{ " + strings.Join(texts, ", ") + " }" }

// RunNFT runs the script with the program nft.
func RunNFT(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}
