// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubtests(t *testing.T) {
	for name, tc := range map[string]struct {
		said string
		want []string
	}{
		"none":                    {"=== RUN   TestA\n--- PASS: TestA (0.00s)\n", nil},
		"some":                    {"=== RUN   TestA\n=== RUN   TestA/one\n=== RUN   TestA/two\n", []string{"TestA/one", "TestA/two"}},
		"a subtest below another": {"=== RUN   TestA/one\n=== RUN   TestA/one/deep\n=== RUN   TestA/one/deep/er\n", []string{"TestA/one/deep/er"}},
		"one whose name is a prefix of another name": {"=== RUN   TestA/one\n=== RUN   TestA/one#01\n=== RUN   TestA/one_more\n", []string{"TestA/one", "TestA/one#01", "TestA/one_more"}},
		"a paused and resumed subtest":               {"=== RUN   TestA/one\n=== PAUSE TestA/one\n=== CONT  TestA/one\n    --- PASS: TestA/one (0.00s)\n", []string{"TestA/one"}},
		"a test that only logs such a line":          {"a_test.go:1: said === RUN   TestA/one\n", nil},
	} {
		t.Run("When a program ran "+name+", it should find the subtests that have no subtests", func(t *testing.T) {
			if diff := cmp.Diff(tc.want, subtests(tc.said)); diff != "" {
				t.Errorf("subtests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPattern checks that a pattern matches exactly one test, although names contain characters of patterns.
func TestPattern(t *testing.T) {
	names := []string{"TestA/one", "TestA/one#01", "TestA/one_more", "TestA/a+b(c).*", "TestA/aab(c).*", "TestAB/one", "TestA/one/deep"}
	for _, name := range names {
		parts := strings.Split(pattern(name), "/")
		for _, other := range names {
			words, fits := strings.Split(other, "/"), true
			for i, part := range parts {
				fits = fits && i < len(words) && regexp.MustCompile(part).MatchString(words[i])
			}
			below := strings.HasPrefix(other, name+"/")
			if fits != (other == name || below) {
				t.Errorf("the pattern of %s fits %s: %t", name, other, fits)
			}
		}
	}
}
