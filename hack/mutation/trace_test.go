// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestReadTests(t *testing.T) {
	g := NewWithT(t)
	s, err := readTests(t.Context(), "./testdata/toy")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.names).To(Equal([]string{"TestAdd", "TestFull", "TestDiscount", "TestDeposit", "TestTax", "TestTip"}))
	g.Expect(s.parallel).To(HaveKeyWithValue("TestTax", true))
	g.Expect(s.parallel).To(HaveKeyWithValue("TestTip", false))
	g.Expect(slices.Collect(maps.Values(s.announced))).To(ContainElement(ContainSubstring(
		`func TestTip(t *testing.T) { _ = mutantOS.Setenv("MUTANT_TEST", "TestTip");`)))
}

func TestPassed(t *testing.T) {
	log := "--- PASS: TestA (1.50s)\n    --- PASS: TestA/When_it_is_quick (0.10s)\n--- SKIP: TestB (0.00s)\n--- FAIL: TestC (2.00s)\n"
	want := map[string]time.Duration{"TestA": 1500 * time.Millisecond, "TestB": 0}
	if diff := cmp.Diff(want, passed([]byte(log))); diff != "" {
		t.Errorf("what passed (-want +got):\n%s", diff)
	}
}

func TestNote(t *testing.T) {
	a, b, failed := &test{name: "TestA"}, &test{name: "TestB"}, &test{name: "TestC"}
	g, s := NewWithT(t), &suite{reached: map[int][]*test{}}
	g.Expect(s.note("- 1\nTestA 2\nTestB 2\nTestC 3\nTestA 2\n", []*test{a, b, failed}, []*test{failed})).To(Succeed())
	g.Expect(s.reached).To(Equal(map[int][]*test{1: {a, b}, 2: {a, b}}), "what comes before all tests is reached by each that passed")
	g.Expect(s.note("TestA\n", nil, nil)).To(MatchError(ContainSubstring("reading what tests reached")))
}
