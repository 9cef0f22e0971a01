// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestReadEquivalents(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		want  []equivalent
		wrong string
	}{
		"nothing":                    {"", nil, ""},
		"an entry":                   {"- {file: a/b.go, change: drop x, reason: no user sees it}", []equivalent{{"a/b.go", "drop x", "no user sees it"}}, ""},
		"no reason":                  {"- {file: a/b.go, change: drop x, reason: equal}\n- {file: a/c.go, change: drop y}", nil, `a/c.go: "drop y" has no reason`},
		"another word":               {"- {file: a/b.go, change: drop x, reason: equal, because: x}", nil, "because"},
		"content that is not a list": {"file: a/b.go", nil, "equivalent.yaml"},
	} {
		t.Run("When the list has "+name+" it should be read, or return an error", func(t *testing.T) {
			g, path := NewWithT(t), filepath.Join(t.TempDir(), "equivalent.yaml")
			g.Expect(os.WriteFile(path, []byte(tc.text), 0o600)).To(Succeed())
			got, err := readEquivalents(path)
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmp.Diff(tc.want, got)).To(BeEmpty())
		})
	}
	t.Run("When the list cannot be read, it should return an error", func(t *testing.T) {
		_, err := readEquivalents(t.TempDir())
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("reading the equivalent changes")))
	})
}

// TestTheList checks that each entry of the list names an existing file.
func TestTheList(t *testing.T) {
	g := NewWithT(t)
	known, err := readEquivalents("equivalent.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range known {
		g.Expect(filepath.Join("..", "..", e.File)).To(BeARegularFile())
	}
}

func TestMatching(t *testing.T) {
	p := &sourcePackage{ImportPath: "example.com/mod/shop", mutants: []*mutant{
		{id: 1, file: "a.go", line: 3, change: "drop x"}, {id: 2, file: "a.go", line: 9, change: "drop x"}, {id: 3, file: "b.go", change: "drop x"}, {id: 4, file: "a.go", change: "drop xy"}}}
	p.Module.Path = "example.com/mod"
	for name, tc := range map[string]struct {
		known []equivalent
		want  map[int]bool
		wrong string
	}{
		"of a file":                       {[]equivalent{{File: "shop/a.go", Change: "drop x"}}, map[int]bool{1: true, 2: true}, ""},
		"of another package":              {[]equivalent{{File: "a.go", Change: "gone"}, {File: "shop/till/a.go", Change: "gone"}, {File: "till/a.go", Change: "gone"}}, map[int]bool{}, ""},
		"that no longer exists":           {[]equivalent{{File: "shop/a.go", Change: "drop x"}, {File: "shop/a.go", Change: "drop y"}}, nil, `shop/a.go: "drop y"`},
		"of a file that no longer exists": {[]equivalent{{File: "shop/c.go", Change: "drop x"}}, nil, `shop/c.go: "drop x"`},
	} {
		t.Run("When the list names a change "+name+" it should match the change or return an error", func(t *testing.T) {
			g := NewWithT(t)
			got, err := matching(tc.known, p)
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmp.Diff(tc.want, got)).To(BeEmpty())
		})
	}
}

func TestPercent(t *testing.T) {
	for _, tc := range []struct{ caught, missed, want int }{{0, 0, 100}, {0, 1, 0}, {1, 0, 100}, {9, 1, 90}, {899, 101, 89}, {999, 1, 99}, {2, 1, 66}} {
		if got := (result{caught: tc.caught, missed: tc.missed}).percent(); got != tc.want {
			t.Errorf("%d caught and %d missed are %d%% and not %d%%", tc.caught, tc.missed, got, tc.want)
		}
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	printTable(&out, []result{{folder: "./a", mutants: 20, unreached: 4, equivalent: 1, caught: 9, missed: 6, took: 1234 * time.Millisecond}, {folder: "./longer", mutants: 1}})
	want := []string{
		"PACKAGE CHANGES UNREACHED EQUIVALENT TRIED CAUGHT SURVIVED PERCENT TOOK",
		"./a 20 4 1 15 9 6 60% 1s",
		"./longer 1 0 0 0 0 0 100% 0s",
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}

func TestFlags(t *testing.T) {
	g := NewWithT(t)
	var l list
	g.Expect(l.Set("./a")).To(Succeed())
	g.Expect(l.Set("./b")).To(Succeed())
	g.Expect(l.String()).To(Equal("./a,./b"))
	var p pattern
	g.Expect(p.String()).To(BeEmpty())
	g.Expect(p.matches(&mutant{})).To(BeTrue(), "none matches all")
	g.Expect(p.Set("a.go:3: drop")).To(Succeed())
	g.Expect(p.String()).To(Equal("a.go:3: drop"))
	g.Expect(p.matches(&mutant{file: "a.go", line: 3, change: "drop x"})).To(BeTrue())
	g.Expect(p.matches(&mutant{file: "a.go", line: 4, change: "drop x"})).To(BeFalse())
	g.Expect(p.Set("(")).NotTo(Succeed())
}
