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
			name: "When tests pass, it should count the tests and not the package",
			events: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/sub"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			passed: 2,
		},
		{
			name: "When a test fails, it should count the test once and its package not again",
			events: []string{
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			failures: []string{"FAIL p TestA"},
		},
		{
			name:     "When a package does not build, it should count as a failure",
			events:   []string{`{"Action":"fail","Package":"p"}`},
			failures: []string{"FAIL p "},
		},
		{
			name: "When a test is skipped, it should say why",
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
		chains     [][]string
		failure    string
	}{
		{name: "When one stage is named, it should run alone", args: "unit", chains: [][]string{{"unit"}}},
		{name: "When chains are joined, they should run side by side", args: "e2e+unit,api,fuzz", chains: [][]string{{"e2e"}, {"unit", "api", "fuzz"}}},
		{name: "When a stage does not exist, it should be named", args: "e2e+units", failure: `"units" is no stage; name one of ` + known()},
		{name: "When nothing is named, it should say how", failure: "name the stages, as in e2e+unit,fuzz, of " + known()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			chains, err := parse(strings.Fields(tc.args))
			if diff := cmp.Diff(tc.chains, chains); diff != "" {
				t.Errorf("chains (-want +got):\n%s", diff)
			}
			if failure := fmt.Sprint(err); tc.failure != "" && failure != tc.failure || tc.failure == "" && err != nil {
				t.Errorf("failure = %v, want %q", err, tc.failure)
			}
		})
	}
}
