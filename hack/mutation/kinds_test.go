// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compiled provides the packages that this test imports, and their paths.
var compiled = sync.OnceValues(func() (*token.FileSet, error) {
	fset := token.NewFileSet()
	var err error
	imports, err = dependencies(context.Background(), fset, "./testdata/toy")
	return fset, err
})

var imports types.Importer

// inMemory returns a package with one file.
func inMemory(t *testing.T, text string) *sourcePackage {
	t.Helper()
	fset, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	p := &sourcePackage{Name: "shop", ImportPath: "example.com/shop", fset: fset, imports: imports, sources: map[string][]byte{"shop.go": []byte("package shop\n\n" + text)}}
	files, info, checked, wrong := p.check(p.sources)
	if len(wrong) > 0 {
		t.Fatal(wrong[0])
	}
	p.files, p.info, p.types = files, info, checked
	p.aliases = aliases{own: checked, imports: map[string]string{}}
	return p
}

// changes returns the changes of a package. Unless all is true, it omits those that make a function return early.
func changes(p *sourcePackage, all bool) []string {
	found := []string{}
	for _, m := range p.mutants {
		if all || !strings.HasSuffix(m.change, " does nothing") {
			found = append(found, m.change)
		}
	}
	return found
}

type kind struct {
	name, code string
	want       []string
}

func checkKinds(t *testing.T, kinds []kind) {
	t.Helper()
	for _, tc := range kinds {
		t.Run("When code has "+tc.name+", it should get exactly the expected changes", func(t *testing.T) {
			p := inMemory(t, tc.code)
			if err := p.mutate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, changes(p, false)); diff != "" {
				t.Errorf("the changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	checkKinds(t, []kind{
		{"a condition", `func f(a bool) { if a { } }`, []string{"a -> not so"}},
		{"a negated condition of an if statement", `func f(a bool) { if !a { } }`, []string{"!a -> not so"}},
		{"a negated condition that is returned", `func f(a bool) bool { return !a }`, []string{"!a -> not so"}},
		{"an equality comparison", `func f(a, b int) bool { return a == b }`, []string{"a == b -> not so"}},
		{"an inequality comparison", `func f(a, b int) bool { return a != b }`, []string{"a != b -> not so"}},
		{"a check for an error", `func f(err error) { if err != nil { } }`, []string{}},
		{"another check of an error", `func f(err error) { if err == nil { } }`, []string{"err == nil -> not so"}},
		{"comparisons", `func f(a, b int) (bool, bool, bool, bool) { return a < b, a <= b, a > b, a >= b }`, []string{
			"a < b -> not so", "< -> <= in a < b", "a <= b -> not so", "<= -> < in a <= b", "a > b -> not so", "> -> >= in a > b", "a >= b -> not so", ">= -> > in a >= b"}},
		{"two conditions", `func f(a, b bool) { if a && b { } }`, []string{"a -> not so", "b -> not so", "&& -> || in a && b"}},
		{"a negated operand of two", `func f(a, b bool) bool { return a || !b }`, []string{"a -> not so", "!b -> not so", "|| -> && in a || !b"}},
		{"three conditions", `func f(a, b bool, err error) bool { return err != nil && (a || b) }`, []string{
			"&& -> || in err != nil && (a || b)", "a -> not so", "b -> not so", "|| -> && in a || b"}},
		{"sums, which are not conditions", `func f(a, b int) int { return a + b - a*b }`, []string{}},
	})
}

func TestStatements(t *testing.T) {
	checkKinds(t, []kind{
		{"a call", `func f(do func()) { do() }`, []string{"drop do()"}},
		{"a count", `func f(n *int) { *n++ }`, []string{"drop *n++"}},
		{"an assignment", `func f(n, m *int) { *n = *m }`, []string{"drop *n = *m"}},
		{"an addition", `func f(n, m *int) { *n += *m }`, []string{"drop *n += *m"}},
		{"a declaration", `func f(m int) int { n := m; return n }`, []string{}},
		{"discarded values", `func f(m int) { _ = m; _, _ = m, m }`, []string{}},
		{"a discarded value beside a used one", `func f(n *int, do func() (int, int)) { *n, _ = do() }`, []string{"drop *n, _ = do()"}},
		{"a panic", `func f(why string) { panic(why) }`, []string{}},
		{"a break out of a loop", `func f() { for { break } }`, []string{"drop break"}},
		{"cases", `func f(n int, do func()) { switch n { case n: do(); fallthrough; default: do() } }`, []string{"drop do()", "drop do()"}},
		{"messages", `func f(c chan int, do func()) { select { case <-c: do() } }`, []string{"drop do()"}},
		{"an error", `func f(err error) (int, error) { return 0, err }`, []string{"err -> nil", "0 -> 0+1"}},
		{"an error that a call returns", `func f(do func() error) error { return do() }`, []string{"do() -> nil"}},
		{"ninety letters", "func f(" + strings.Repeat("x", 88) + " func()) { " + strings.Repeat("x", 88) + "() }", []string{"drop " + strings.Repeat("x", 88) + "()"}},
		{"a long call", `func f(aVeryLongNameOfSomethingThatIsCalled func(...string), anotherVeryLongName string) { aVeryLongNameOfSomethingThatIsCalled(anotherVeryLongName, anotherVeryLongName,
			anotherVeryLongName) }`, []string{"drop aVeryLongNameOfSomethingThatIsCalled(anotherVeryLongName, anotherVeryLongName, anotherVery..."}},
	})
}

func TestLiterals(t *testing.T) {
	checkKinds(t, []kind{
		{"a number", `func f() int { return 7 }`, []string{"7 -> 7+1"}},
		{"a name", `func f() string { return "name" }`, []string{`"name" -> another`}},
		{"an empty string", `func f() string { return "" }`, []string{`"" -> another`}},
		{"a message for users", `func f() string { return "no such thing" }`, []string{}},
		{"a format", `func f() string { return "%d" }`, []string{}},
		{"lines", "func f() string { return \"one\\ntwo\" + `three\nfour` }", []string{}},
		{"boolean literals", `func f() (bool, bool) { return true, false }`, []string{"true -> !true", "false -> !false"}},
		{"a variable", `var limit = 3`, []string{"3 -> 3+1"}},
		{"a constant, which other constants may use", `const limit = 3`, []string{}},
		{"a type", "type T struct { N [4]int `json:\"n\"` }", []string{}},
		{"an import", `import _ "errors"`, []string{}},
		{"a float or a rune", `func f() (float64, rune) { return 0.5, 'x' }`, []string{}},
	})
}

func TestElements(t *testing.T) {
	const types = `type T struct { Name string; Age int; On bool; In []string; By map[string]int; Up *T }
`
	checkKinds(t, []kind{
		{"fields", types + `func f(n string, up *T) T { return T{Name: n, Up: up} }`, []string{"drop Name: n", "drop Up: up"}},
		{"fields of literals, which are changed themselves", types + `func f() T { return T{Name: "x", Age: 1, On: true, Up: nil} }`, []string{`"x" -> another`, "1 -> 1+1", "true -> !true"}},
		{"the name of a phase, which is only displayed", `type Phase[S any] struct { Name string; On S }
			func f() []Phase[bool] { return []Phase[bool]{{Name: "sweep", On: true}} }`, []string{`drop {Name: "sweep", On: true} from the list`, "true -> !true"}},
		{"fields without names", types + `type U struct { a, b *T }
			func f(up *T) U { return U{up, up} }`, []string{}},
		{"a list", `func f(a, b string) []string { return []string{a, b} }`, []string{"drop a from the list", "drop b from the list"}},
		{"an array of a fixed length", `func f(a, b string) [2]string { return [2]string{a, b} }`, []string{}},
		{"a map", `func f(k string, v []int) map[string][]int { return map[string][]int{k: v} }`, []string{"drop k: v from the map"}},
		{"lists in a list", `func f(a string) [][]string { return [][]string{{a}} }`, []string{"drop {a} from the list"}},
		{"keys without a type of their own", types + `func f(a, b *T) map[[1]*T]*T { return map[[1]*T]*T{{a}: b} }`, []string{}},
	})
}

func TestChains(t *testing.T) {
	const types = `type B struct { n int }
func (b *B) With(n int) *B { return b }
func (b *B) Done() error { return nil }
func (b B) Copy() B { return b }
`
	changed := func(code string) []string {
		p := inMemory(t, types+code)
		p.find()
		return slices.DeleteFunc(changes(p, false), func(c string) bool { return !strings.HasPrefix(c, "drop .") })
	}
	for code, want := range map[string][]string{
		`func f(b *B, n int) *B { return b.With(n) }`:                      {"drop .With(n)"},
		`func f(b *B, n, m int) error { return b.With(n).With(m).Done() }`: {"drop .With(m)", "drop .With(n)"},
		`func f(b B) B { return b.Copy() }`:                                {"drop .Copy()"},
		`func f(b *B) B { return b.Copy() }`:                               {},
		`func f(b *B) func(int) *B { return b.With }`:                      {},
	} {
		if diff := cmp.Diff(want, changed(code)); diff != "" {
			t.Errorf("the links of %s that can be left out (-want +got):\n%s", code, diff)
		}
	}
}

func TestFunctions(t *testing.T) {
	p := inMemory(t, `type T struct{}
type G[E any] struct{}
func (T) Method() (int, error) { return 1, nil }
func (*T) Pointer() { println() }
func (G[E]) Generic() { println() }
func generic[E any]() { println() }
func init() { println() }
func main() { println() }
func empty() { }
func external()
func does() { println() }
`)
	p.find()
	found := slices.DeleteFunc(changes(p, true), func(c string) bool { return !strings.HasSuffix(c, " does nothing") })
	if diff := cmp.Diff([]string{"Method does nothing", "Pointer does nothing", "does does nothing"}, found); diff != "" {
		t.Errorf("the functions that can do nothing (-want +got):\n%s", diff)
	}
}

func TestLoggersAreLeftAlone(t *testing.T) {
	p := inMemory(t, `import "log/slog"
type Logger struct{}
func (Logger) Info(string) {}
func f(log *slog.Logger, value slog.Logger, own Logger, n *int) {
	log.With("key", 1).Info("said", "n", 7)
	value.Warn("said")
	own.Info("x")
}
`)
	p.find()
	if diff := cmp.Diff([]string{`drop own.Info("x")`, `"x" -> another`}, changes(p, false)); diff != "" {
		t.Errorf("the changes (-want +got):\n%s", diff)
	}
}

func TestPlaces(t *testing.T) {
	p := inMemory(t, "func f(a bool) int {\n\tif a {\n\t\treturn 1\n\t}\n\treturn 2\n}\n")
	p.find()
	var lines []string
	for i, m := range p.mutants {
		if m.id != i+1 {
			t.Errorf("change %d has the number %d", i, m.id)
		}
		lines = append(lines, m.String())
	}
	want := []string{"shop.go:3: f does nothing", "shop.go:4: a -> not so", "shop.go:5: 1 -> 1+1", "shop.go:7: 2 -> 2+1"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the changes (-want +got):\n%s", diff)
	}
	for place, want := range map[string]int{"": 4, "shop.go": 4, "shop.go:5": 1, "shop.go:6": 0, "op.go": 0, "shop.go:": 0} {
		found := 0
		for _, m := range p.mutants {
			if m.isAt(place) {
				found++
			}
		}
		if found != want {
			t.Errorf("at %q are %d changes and not %d", place, found, want)
		}
	}
}
