package host

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// kernel runs no script but remembers it.
type kernel struct {
	table   string
	scripts []string
	err     error
}

func (k *kernel) run(_ context.Context, script string) (string, error) {
	if k.err != nil {
		return "", k.err
	}
	if strings.HasPrefix(script, "list ") {
		if k.table == "" {
			return "", errors.New("no such table")
		}
		return k.table, nil
	}
	k.scripts = append(k.scripts, script)
	k.table = script
	return "", nil
}

func TestMasqueradeEnsure(t *testing.T) {
	pods, cluster := prefixes("10.0.1.0/24"), prefixes("10.0.0.0/16")

	t.Run("When called again it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Run: k.run}
		g.Expect(m.Ensure(t.Context(), pods, cluster)).To(Succeed())
		g.Expect(m.Ensure(t.Context(), pods, cluster)).To(Succeed())
		g.Expect(k.scripts).To(HaveLen(1))
	})
	t.Run("When somebody removed or changed the table it should write it again", func(t *testing.T) {
		for _, changed := range []string{"", "table inet hypershift-node-network { }"} {
			g := NewWithT(t)
			k := &kernel{}
			m := &Masquerade{Run: k.run}
			g.Expect(m.Ensure(t.Context(), pods, cluster)).To(Succeed())
			k.table = changed
			g.Expect(m.Ensure(t.Context(), pods, cluster)).To(Succeed())
			g.Expect(k.scripts).To(HaveLen(2))
		}
	})
	t.Run("When the node got another pod network it should write that", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{}
		m := &Masquerade{Run: k.run}
		g.Expect(m.Ensure(t.Context(), pods, cluster)).To(Succeed())
		g.Expect(m.Ensure(t.Context(), prefixes("10.0.7.0/24"), cluster)).To(Succeed())
		g.Expect(k.scripts[1]).To(ContainSubstring("10.0.7.0/24"))
		g.Expect(k.scripts[1]).NotTo(ContainSubstring("10.0.1.0/24"))
	})
	t.Run("When the kernel refuses it should say what was being done and try again next time", func(t *testing.T) {
		g := NewWithT(t)
		k := &kernel{err: errors.New("operation not permitted")}
		m := &Masquerade{Run: k.run}
		g.Expect(m.Ensure(t.Context(), pods, cluster)).To(MatchError(And(ContainSubstring(table), ContainSubstring("not permitted"))))
		k.err = nil
		g.Expect(m.Ensure(t.Context(), pods, cluster)).To(Succeed())
		g.Expect(k.scripts).To(HaveLen(1))
	})
}

func TestMasqueradeScript(t *testing.T) {
	t.Run("When there are two address families it should have a rule for each", func(t *testing.T) {
		g := NewWithT(t)
		script := masqueradeScript(prefixes("10.0.1.0/24", "fd00:1::/64"), prefixes("fd00::/48", "10.128.0.0/14", "10.0.0.0/16"))
		g.Expect(script).To(ContainSubstring("ip saddr { 10.0.1.0/24 } ip daddr != { 10.0.0.0/16, 10.128.0.0/14, 224.0.0.0/4 } masquerade\n"))
		g.Expect(script).To(ContainSubstring("ip6 saddr { fd00:1::/64 } ip6 daddr != { fd00::/48, ff00::/8 } masquerade\n"))
	})
	t.Run("When a family has no pods it should have no rule for it", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(masqueradeScript(prefixes("10.0.1.0/24"), nil)).NotTo(ContainSubstring("ip6"))
	})
}
