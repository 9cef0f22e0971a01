// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestToy changes a package of a few functions whose tests have some gaps.
func TestToy(t *testing.T) {
	before, err := os.ReadFile("testdata/toy/toy.go")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = mutate(t.Context(), options{packages: list{"./testdata/toy"}, equivalent: "testdata/toy.yaml", threshold: 100, verbose: true}, &out)
	t.Log(out.String())
	lines, _, done := strings.Cut(out.String(), "PACKAGE")
	if !done {
		t.Fatal(err)
	}

	t.Run("When too few changes are caught, it should return an error", func(t *testing.T) {
		NewWithT(t).Expect(errors.Is(err, errBelow)).To(BeTrue())
	})
	for _, tc := range []struct{ gap, line string }{
		{"no test checks a field", `drop Gift: gift`},
		{"no test checks a call in a chain", `drop .With("pear")`},
		{"no test checks an argument", `"pear" -> another`},
	} {
		t.Run("When "+tc.gap+", its change should survive", func(t *testing.T) {
			NewWithT(t).Expect(lines).To(MatchRegexp(`survived toy.go:\d+: ` + regexp.QuoteMeta(tc.line) + "\n"))
		})
	}
	for _, tc := range []struct{ kind, line string }{
		{"condition", `item == "" -> not so`},
		{"statement", `drop c.Items = append(c.Items, item)`},
		{"element of a list", `drop "bag" from the list`},
		{"key of a map", `drop "some": 5 from the map`},
		{"text", `"EUR" -> another`},
		{"number", `10 -> 10+1`},
		{"comparison", `>= -> > in items >= 10`},
		{"operator", `&& -> ||`},
		{"error", `errEmpty() -> nil`},
		{"function", `Discount does nothing`},
		{"function beside a change that does not compile", `Deposit does nothing`},
		{"number that only a test of another package checks", `20 -> 20+1`},
		{"number that a parallel test checks", `5 -> 5+1`},
		{"link of a chain", `drop .With("apple")`},
	} {
		t.Run("When a "+tc.kind+" is wrong and a test checks it, the change should be caught", func(t *testing.T) {
			NewWithT(t).Expect(lines).To(MatchRegexp(`caught toy.go:\d+: ` + regexp.QuoteMeta(tc.line)))
		})
	}
	t.Run("When a change is listed as equivalent, it should not be tried", func(t *testing.T) {
		NewWithT(t).Expect(lines).NotTo(ContainSubstring("c.seen++"))
	})
	t.Run("When a change only affects a log message, it should not be tried", func(t *testing.T) {
		NewWithT(t).Expect(lines).NotTo(ContainSubstring("amount\""))
		NewWithT(t).Expect(lines).NotTo(ContainSubstring("Info"))
	})
	t.Run("When all changes are tried, the columns of the table should add up", func(t *testing.T) {
		g := NewWithT(t)
		row := regexp.MustCompile(`(?m)^\./testdata/toy +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)%`).FindStringSubmatch(out.String())
		g.Expect(row).NotTo(BeNil())
		g.Expect(row[2]).NotTo(Equal("0"), "Unused is reached by no test")
		g.Expect(row[3]).To(Equal("1"))
		g.Expect(row[6]).To(Equal("3"))
	})
	t.Run("When all changes are tried, the source should be unchanged", func(t *testing.T) {
		after, err := os.ReadFile("testdata/toy/toy.go")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(after).To(Equal(before))
		NewWithT(t).Expect(filepath.Join("testdata/toy", helperFile)).NotTo(BeAnExistingFile())
	})
}

func TestChoice(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		with       options
	}{
		{"When a pattern is given, it should try only the changes that match", `(?s)^seed 0\ncaught toy.go:\d+: drop \.With\("apple"\)\nPACKAGE.* 1 +1 +0 +100%`,
			options{like: pattern{regexp.MustCompile(`apple"\)$`)}, verbose: true}},
		{"When the time is over, it should report how many changes it tried", `toy: 0 of \d+ tried in 1ns`, options{within: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			tc.with.packages, tc.with.equivalent = list{"./testdata/toy"}, "testdata/toy.yaml"
			g := NewWithT(t)
			g.Expect(mutate(t.Context(), tc.with, &out)).To(Succeed())
			g.Expect(out.String()).To(MatchRegexp(tc.want))
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name string
		with options
		want string
	}{
		{"When no package is given, it should return the usage", options{}, "no package is named: give --package"},
		{"When a test fails without any change, it should name the test", options{packages: list{"./testdata/red"}}, "TestRed fails with nothing changed"},
		{"When the list of equivalent changes is outdated, it should name the entry",
			options{packages: list{"./testdata/toy"}, equivalent: "testdata/stale.yaml", run: "none"}, "drop what was there once"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(mutate(t.Context(), tc.with, &bytes.Buffer{})).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestSample(t *testing.T) {
	all := make([]*mutant, 100)
	for i := range all {
		all[i] = &mutant{id: i}
	}
	t.Run("When the seed is the same, it should pick the same changes", func(t *testing.T) {
		NewWithT(t).Expect(sample(all, 7, 10)).To(Equal(sample(all, 7, 10)))
	})
	t.Run("When the seed differs, it should pick other changes", func(t *testing.T) {
		NewWithT(t).Expect(sample(all, 7, 10)).NotTo(Equal(sample(all, 8, 10)))
	})
	t.Run("When a number is given, it should pick that many changes in order", func(t *testing.T) {
		NewWithT(t).Expect(sample(all, 7, 1)).To(HaveLen(1))
		picked := sample(all, 7, 99)
		NewWithT(t).Expect(picked).To(HaveLen(99))
		NewWithT(t).Expect(slices.IsSortedFunc(picked, func(a, b *mutant) int { return a.id - b.id })).To(BeTrue())
		NewWithT(t).Expect(sample(all, 7, 100)).To(Equal(all))
	})
	t.Run("When no limit is given, it should pick all changes", func(t *testing.T) {
		NewWithT(t).Expect(sample(all, 7, 0)).To(HaveLen(100))
	})
}
