// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
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

// TestAnnounce checks that only functions that go test runs announce their name, also in a file with one test.
func TestAnnounce(t *testing.T) {
	for name, tc := range map[string]struct {
		code     string
		names    []string
		announce bool
	}{
		"one test": {"func TestA(t *testing.T) { _ = t }", []string{"TestA"}, true},
		"a test whose parameter has another name": {"func TestA(x *testing.T) {\n}\nfunc Testable(t *testing.T) {}", []string{"TestA", "Testable"}, true},
		"a TestMain":                  {"func TestMain(m *testing.M) { m.Run() }", nil, false},
		"a helper":                    {"func TestingFor(t testing.TB) {}\nfunc Test(t *testing.T, n int) {}\nfunc Tested() {}", nil, false},
		"a method":                    {"type s struct{}\nfunc (s) TestA(t *testing.T) {}", nil, false},
		"a benchmark and a fuzz test": {"func BenchmarkA(b *testing.B) {}\nfunc FuzzA(f *testing.F) {}", nil, false},
	} {
		t.Run("When a file has "+name+" only the beginnings of its tests should be changed", func(t *testing.T) {
			g, path := NewWithT(t), filepath.Join(t.TempDir(), "a_test.go")
			g.Expect(os.WriteFile(path, []byte("package a\n\nimport \"testing\"\n\n"+tc.code+"\n"), 0o600)).To(Succeed())
			s := &testSources{announced: map[string][]byte{}, parallel: map[string]bool{}}
			g.Expect(s.announce(path)).To(Succeed())
			g.Expect(s.names).To(Equal(tc.names))
			g.Expect(s.announced).To(HaveLen(map[bool]int{true: 1}[tc.announce]))
			for _, name := range tc.names {
				g.Expect(string(s.announced[path])).To(ContainSubstring(`{ _ = mutantOS.Setenv("MUTANT_TEST", "` + name + `");`))
			}
		})
	}
	t.Run("When a file is not valid Go, it should return an error", func(t *testing.T) {
		g, path := NewWithT(t), filepath.Join(t.TempDir(), "a_test.go")
		g.Expect(os.WriteFile(path, []byte("package"), 0o600)).To(Succeed())
		g.Expect((&testSources{}).announce(path)).To(MatchError(ContainSubstring("reading tests")))
		g.Expect((&testSources{}).announce(path + ".gone")).To(MatchError(os.ErrNotExist))
	})
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
