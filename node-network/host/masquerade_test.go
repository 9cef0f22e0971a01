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

	t.Run("When it is called again, it should not write the table", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Filter: k}
		g.Expect(m.Ensure(pods, cluster)).To(Succeed())
		g.Expect(m.Ensure(pods, cluster)).To(Succeed())
		g.Expect(k.written).To(HaveLen(1))
	})
	t.Run("When the table was removed or changed, it should write it again", func(t *testing.T) {
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
	t.Run("When the Pod network of the node changes, it should write the new one", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Filter: k}
		g.Expect(m.Ensure(pods, cluster)).To(Succeed())
		g.Expect(m.Ensure(prefixes("10.0.7.0/24"), cluster)).To(Succeed())
		g.Expect(k.table).To(ContainSubstring("10.0.7.0/24"))
		g.Expect(k.table).NotTo(ContainSubstring("10.0.1.0/24"))
	})
	t.Run("When the node has no Pod network yet, it should write the empty table once", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Filter: k}
		g.Expect(m.Ensure(nil, cluster)).To(Succeed())
		g.Expect(m.Ensure(nil, cluster)).To(Succeed())
		g.Expect(k.written).To(HaveLen(1))
	})
	t.Run("When the kernel returns an error, it should name the table and retry on the next call", func(t *testing.T) {
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
		"When there are two address families, it should accept cluster traffic and masquerade the rest for each": {
			prefixes("10.0.1.0/24", "fd00:1::/64"), prefixes("fd00::/48", "10.128.0.0/14", "10.0.0.0/16"),
			[]Rule{
				rule("10.0.1.0/24", "10.0.0.0/16"), rule("10.0.1.0/24", "10.128.0.0/14"), rule("10.0.1.0/24", "224.0.0.0/4"), rule("10.0.1.0/24", ""),
				rule("fd00:1::/64", "fd00::/48"), rule("fd00:1::/64", "ff00::/8"), rule("fd00:1::/64", ""),
			},
		},
		"When an address family has no Pod network, it should have no rule for it": {
			prefixes("10.0.1.0/24"), nil, []Rule{rule("10.0.1.0/24", "224.0.0.0/4"), rule("10.0.1.0/24", "")},
		},
		"When there is no Pod network, it should have no rules": {nil, prefixes("10.0.0.0/16"), []Rule{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rulesOf(tc.pods, tc.cluster), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Error(diff)
			}
		})
	}
}
