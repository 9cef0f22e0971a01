// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name            string
		events          []string
		passed          int
		failures, skips []string
	}{
		{
			name: "counts passed tests without their package",
			events: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/sub"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			passed: 2,
		},
		{
			name: "counts a failed test once",
			events: []string{
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			failures: []string{"FAIL p TestA"},
		},
		{
			name:     "counts a package that does not build as a failure",
			events:   []string{`{"Action":"fail","Package":"p"}`},
			failures: []string{"FAIL p "},
		},
		{
			name: "reports the reason for a skipped test",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: needs root\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
			},
			skips: []string{"SKIP p TestA: a_test.go:7: needs root"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newReport(false)
			r.read(strings.NewReader(strings.Join(tc.events, "\n")))
			if r.passed != tc.passed {
				t.Errorf("passed = %d, want %d", r.passed, tc.passed)
			}
			if diff := cmp.Diff(tc.failures, r.failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.skips, r.skips); diff != "" {
				t.Errorf("skips (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		phases     []phase
		failure    string
	}{
		{name: "a single stage runs alone", args: "unit", phases: []phase{{{"unit"}}}},
		{
			name: "chains joined by + run in parallel", args: "e2e+unit,api,lint",
			phases: []phase{{{"e2e"}, {"unit", "api", "lint"}}},
		},
		{name: "arguments run one after another", args: "build e2e+unit", phases: []phase{{{"build"}}, {{"e2e"}, {"unit"}}}},
		{name: "an unknown stage is named in the error", args: "e2e+units", failure: `unknown stage "units"; known stages: ` + known()},
		{
			name:    "no argument returns an error with an example",
			failure: "name the stages to run, as in: build e2e+lint,unit; known stages: " + known(),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			phases, err := parse(strings.Fields(tc.args))
			if diff := cmp.Diff(tc.phases, phases); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			if failure := fmt.Sprint(err); tc.failure != "" && failure != tc.failure || tc.failure == "" && err != nil {
				t.Errorf("failure = %v, want %q", err, tc.failure)
			}
		})
	}
}
