// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/types"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

// TestApply checks that the text around the larger piece is outside, and that the first of two edits of the same piece
// is outside.
func TestApply(t *testing.T) {
	wrapped := func(start, end, id int, before, after string) []edit {
		return []edit{{offset: start, size: end - start, id: id, text: before}, {offset: end, size: end - start, id: id, text: after, closes: true}}
	}
	for _, tc := range []struct {
		name, source, want string
		edits              [][]edit
	}{
		{"nothing is changed", "a + b", "a + b", nil},
		{"a piece is wrapped", "a + b", "(a) + b", [][]edit{wrapped(0, 1, 1, "(", ")")}},
		{"pieces are side by side", "ab", "(a)[b]", [][]edit{wrapped(1, 2, 2, "[", "]"), wrapped(0, 1, 1, "(", ")")}},
		{"one piece contains another that is found later", "a + b", "(a + [b])", [][]edit{wrapped(0, 5, 1, "(", ")"), wrapped(4, 5, 2, "[", "]")}},
		{"one piece contains another that is found earlier", "a + b", "([a] + b)", [][]edit{wrapped(0, 1, 1, "[", "]"), wrapped(0, 5, 2, "(", ")")}},
		{"both wrap the same", "a", "([{a}])", [][]edit{wrapped(0, 1, 3, "{", "}"), wrapped(0, 1, 1, "(", ")"), wrapped(0, 1, 2, "[", "]")}},
	} {
		t.Run("When "+tc.name+", the text should nest", func(t *testing.T) {
			var edits []edit
			for _, pair := range tc.edits {
				edits = append(edits, pair...)
			}
			got := string(apply([]byte(tc.source), edits))
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

// TestLeavesOutWhatDoesNotCompile checks that a change that does not compile does not remove other changes.
func TestLeavesOutWhatDoesNotCompile(t *testing.T) {
	for name, tc := range map[string]struct {
		code string
		want []string
	}{
		"the length of an array":                    {`func f() int { a := [2]int{}; return len(a) + 5 }`, []string{"f does nothing", "5 -> 5+1"}},
		"an array index that would be out of range": {`func f(a [2]int) (int, int) { return a[1], 7 }`, []string{"f does nothing", "1 -> 1+1", "7 -> 7+1"}},
		"a type that is local to a function": {`func f(n int) any { type inner int; type outer struct{ I inner }; return []outer{{I: inner(n)}, {I: 3}} }`,
			[]string{"f does nothing", "drop {I: inner(n)} from the list", "drop {I: 3} from the list"}},
		"an untyped constant":                 {`func f(d float32) float32 { return d * (1 << 3) }`, []string{"f does nothing"}},
		"a constant index of a string":        {`func f() byte { return "ab"[1] }`, []string{"f does nothing", `"ab" -> another`, "1 -> 1+1"}},
		"a comparison with nil":               {`func f(a *int) bool { return a == nil || *a > 4 }`, []string{"f does nothing", "a == nil -> not so", "*a > 4 -> not so", "|| -> && in a == nil || *a > 4", "> -> >= in *a > 4", "4 -> 4+1"}},
		"two case values that must differ":    {`func f(k string) int { switch k { case "a": return 1; case "b": return 2 }; return 3 }`, []string{"f does nothing", `"a" -> another`, "1 -> 1+1", `"b" -> another`, "2 -> 2+1", "3 -> 3+1"}},
		"a variable that initializes another": {"var a = b + 1\nvar b = 2", []string{"1 -> 1+1", "2 -> 2+1"}},
	} {
		t.Run("When code has "+name+", the changes beside it should stay", func(t *testing.T) {
			p := inMemory(t, tc.code)
			if err := p.mutate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, changes(p, true)); diff != "" {
				t.Errorf("the changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInstrument checks that the built package equals the original, except for its switches.
func TestInstrument(t *testing.T) {
	g, p := NewWithT(t), inMemory(t, `import "errors"
type T struct { E error }
func f(name string) *T { return &T{E: errors.New(name)} }
`)
	g.Expect(p.mutate()).To(Succeed())
	changed := p.instrument()
	g.Expect(changed).To(HaveLen(2))
	source := string(changed["shop.go"])
	g.Expect(source).To(ContainSubstring("if mutantIs(1) { return *new("))
	g.Expect(source).To(MatchRegexp(`E: mutantZero\[mutantType\d+_\]\(2, errors.New\(name\)\)`))
	helper := string(changed[helperFile])
	g.Expect(helper).To(HavePrefix("package shop\n"))
	g.Expect(helper).To(MatchRegexp(`type mutantType\d+_ = \*T\n`), "a type of the package itself needs no import")
	g.Expect(helper).NotTo(ContainSubstring("mutantImport"), "no type of another package is named")
	g.Expect(string(p.sources["shop.go"])).NotTo(ContainSubstring("mutant"))
	again := p.instrument()
	g.Expect(again).To(Equal(changed), "the same each time")
}

func TestAliases(t *testing.T) {
	g := NewWithT(t)
	own, other := types.NewPackage("example.com/shop", "shop"), types.NewPackage("example.com/till", "till")
	named := func(p *types.Package, name string) types.Type {
		return types.NewNamed(types.NewTypeName(0, p, name, nil), types.Typ[types.Int], nil)
	}
	a := &aliases{own: own, imports: map[string]string{}}
	till := a.of(types.NewPointer(named(other, "Till")))
	g.Expect(a.of(named(own, "Cart"))).NotTo(Equal(till))
	g.Expect(a.of(types.NewPointer(named(other, "Till")))).To(Equal(till), "one name for one type")
	text := string(a.render("shop", "uses "+till+" alone"))
	g.Expect(text).To(ContainSubstring("type " + till + " = *mutantImport0.Till\n"))
	g.Expect(text).To(ContainSubstring(`import mutantImport0 "example.com/till"`))
	g.Expect(text).NotTo(ContainSubstring("Cart"), "what is not used would not compile")
	g.Expect(string(a.render("shop", "uses none"))).NotTo(ContainSubstring("till"))
	g.Expect(strings.Count(text, "package shop")).To(Equal(1))
}
