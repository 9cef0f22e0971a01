// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestBatches(t *testing.T) {
	for _, tc := range []struct {
		name  string
		tests []*test
		want  string
	}{
		{"When tests are quick, it should put them in one batch", []*test{{name: "A", took: 900 * time.Millisecond}, {name: "B", took: time.Second}}, "A B"},
		{"When a test is slow, it should run it after the quick tests", []*test{{name: "Slow", took: 30 * time.Second}, {name: "Quick", took: 1}}, "Quick, Slow"},
		{"When many tests are slow, each batch should take longer than the one before", []*test{
			{name: "A", took: 3 * time.Second}, {name: "B", took: 3 * time.Second}, {name: "C", took: 4 * time.Second},
			{name: "D", took: 9 * time.Second}, {name: "E", took: 10 * time.Second}, {name: "F", took: 90 * time.Second},
		}, "A, B C, D E, F"},
		{"When a slow test has caught mutants before, it should run it before one that has not", []*test{
			{name: "Once", took: 20 * time.Second, caught: 1}, {name: "Never", took: 15 * time.Second},
		}, "Once, Never"},
		{"When there are no tests, it should return no batches", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, batch := range batches(tc.tests) {
				var names []string
				for _, asked := range batch {
					names = append(names, asked.name)
				}
				got = append(got, strings.Join(names, " "))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("the order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatience(t *testing.T) {
	for took, want := range map[time.Duration]string{
		time.Second: "10s", 20 * time.Second: "40s", time.Hour: "1m0s",
	} {
		t.Run("When tests take "+took.String()+", a wait should end after "+want, func(t *testing.T) {
			NewWithT(t).Expect(patience(took)).To(Equal("GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=" + want))
		})
	}
}

func TestUntilFailure(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		said       []string
	}{
		{"When a subtest fails, it should end the run and name the parent test", "TestB", []string{"=== RUN   TestB\n", "    --- FAIL: TestB/When_it_fails (0.10s)\n"}},
		{"When a line arrives in two writes, it should still recognize the failure", "TestB", []string{"ok\n--- FA", "IL: Tes", "tB (0.10s)\n"}},
		{"When a test passes, it should not end the run", "", []string{"--- PASS: TestB (0.10s)\n", "TestB said --- FAIL: TestB (not)\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ended := false
			log := &untilFailure{end: func() { ended = true }}
			for _, text := range tc.said {
				n, err := log.Write([]byte(text))
				g.Expect(n, err).To(Equal(len(text)))
			}
			g.Expect(ended).To(Equal(tc.want != ""))
			g.Expect(log.Bytes()).To(Equal(bytes.Join(asBytes(tc.said), nil)))
			tests := []*test{{name: "TestA"}, {name: "TestB"}}
			credit(tests, log.Bytes())
			for _, asked := range tests {
				g.Expect(asked.caught == 1).To(Equal(asked.name == tc.want), asked.name)
			}
		})
	}
}

func asBytes(texts []string) (all [][]byte) {
	for _, text := range texts {
		all = append(all, []byte(text))
	}
	return all
}
