// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

// kernel applies no rules, but records what is written.
type kernel struct {
	table   string
	written [][]Rule
	err     error
}

func (k *kernel) Read() (string, error) { return k.table, k.err }

func (k *kernel) Write(rules []Rule) error {
	if k.err != nil {
		return k.err
	}
	k.written = append(k.written, rules)
	k.table = fmt.Sprint(rules)
	return nil
}

func TestMasqueradeEnsure(t *testing.T) {
	pods, cluster := prefixes("10.0.1.0/24"), prefixes("10.0.0.0/16")

	t.Run("When called again it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Filter: k}
		g.Expect(m.Ensure(pods, cluster)).To(Succeed())
		g.Expect(m.Ensure(pods, cluster)).To(Succeed())
		g.Expect(k.written).To(HaveLen(1))
	})
	t.Run("When somebody removed or changed the table it should write it again", func(t *testing.T) {
		for _, changed := range []string{"", "another"} {
			g := NewWithT(t)
			k := &kernel{}
			m := &Masquerade{Filter: k}
			g.Expect(m.Ensure(pods, cluster)).To(Succeed())
			k.table = changed
			g.Expect(m.Ensure(pods, cluster)).To(Succeed())
			g.Expect(k.written).To(HaveLen(2))
		}
	})
	t.Run("When the node got another pod network it should write that", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Filter: k}
		g.Expect(m.Ensure(pods, cluster)).To(Succeed())
		g.Expect(m.Ensure(prefixes("10.0.7.0/24"), cluster)).To(Succeed())
		g.Expect(k.table).To(ContainSubstring("10.0.7.0/24"))
		g.Expect(k.table).NotTo(ContainSubstring("10.0.1.0/24"))
	})
	t.Run("When the node has no pod network yet it should write the empty table once", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Filter: k}
		g.Expect(m.Ensure(nil, cluster)).To(Succeed())
		g.Expect(m.Ensure(nil, cluster)).To(Succeed())
		g.Expect(k.written).To(HaveLen(1))
	})
	t.Run("When the kernel refuses it should say what was being done and try again next time", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{err: errors.New("operation not permitted")}
		m := &Masquerade{Filter: k}
		g.Expect(m.Ensure(pods, cluster)).To(MatchError(And(ContainSubstring(tableName), ContainSubstring("not permitted"))))
		k.err = nil
		g.Expect(m.Ensure(pods, cluster)).To(Succeed())
		g.Expect(k.written).To(HaveLen(1))
	})
}

func TestRules(t *testing.T) {
	rule := func(from, to string) Rule {
		if to == "" {
			return Rule{From: netip.MustParsePrefix(from), Masquerade: true}
		}
		return Rule{From: netip.MustParsePrefix(from), To: netip.MustParsePrefix(to)}
	}
	for name, tc := range map[string]struct {
		pods, cluster []netip.Prefix
		want          []Rule
	}{
		"When there are two address families it should let each pass within the cluster, and masquerade the rest": {
			prefixes("10.0.1.0/24", "fd00:1::/64"), prefixes("fd00::/48", "10.128.0.0/14", "10.0.0.0/16"),
			[]Rule{
				rule("10.0.1.0/24", "10.0.0.0/16"), rule("10.0.1.0/24", "10.128.0.0/14"), rule("10.0.1.0/24", "224.0.0.0/4"), rule("10.0.1.0/24", ""),
				rule("fd00:1::/64", "fd00::/48"), rule("fd00:1::/64", "ff00::/8"), rule("fd00:1::/64", ""),
			},
		},
		"When a family has no pods it should have no rule for it": {
			prefixes("10.0.1.0/24"), nil, []Rule{rule("10.0.1.0/24", "224.0.0.0/4"), rule("10.0.1.0/24", "")},
		},
		"When there are no pods it should have no rule": {nil, prefixes("10.0.0.0/16"), []Rule{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rulesOf(tc.pods, tc.cluster), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Error(diff)
			}
		})
	}
}
