// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"
)

const (
	// quick is the total duration of the first batch of tests.
	quick = 2 * time.Second
	// growth is the factor between the durations of successive batches.
	growth = 4
)

// batches sorts tests so that a change is caught at the lowest cost, and groups them. A process for each test would
// start a kube-apiserver each time; one process for all would run for minutes even if the first test fails. A test that
// is fast, or has caught other changes, comes first.
func batches(tests []*test) [][]*test {
	sorted := slices.Clone(tests)
	slices.SortStableFunc(sorted, func(a, b *test) int { return cmp.Compare(a.price(), b.price()) })
	var all [][]*test
	for limit := quick; len(sorted) > 0; limit *= growth {
		n := 1
		for n < len(sorted) && total(sorted[:n+1]) < limit {
			n++
		}
		all = append(all, sorted[:n])
		sorted = sorted[n:]
	}
	return all
}

// price returns the duration of a test, reduced by the number of changes that it has caught.
func (t *test) price() time.Duration { return t.took / time.Duration(1+t.caught) }

func total(tests []*test) (sum time.Duration) {
	for _, t := range tests {
		sum += t.took
	}
	return sum
}

// patience sets Gomega's default timeout to twice the duration of the tests, since a change can prevent the awaited
// state.
func patience(took time.Duration) string {
	return "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=" + max(10*time.Second, min(time.Minute, 2*took)).String()
}

var failure = regexp.MustCompile(`(?m)^ *--- FAIL: ([^/\s]+)\S* \(`)

// credit records which of the tests failed. A test that panicked or timed out is not named.
func credit(tests []*test, log []byte) {
	named := failure.FindSubmatch(log)
	for _, t := range tests {
		if named != nil && t.name == string(named[1]) {
			t.caught++
		}
	}
}

// untilFailure buffers the output of tests and ends them once one has failed, including their cleanup. The buffer is a
// named field: if it were embedded, a copy could use its other methods and bypass Write.
type untilFailure struct {
	said bytes.Buffer
	end  context.CancelFunc
}

// Bytes returns the complete output.
func (u *untilFailure) Bytes() []byte { return u.said.Bytes() }

// Write implements io.Writer.
func (u *untilFailure) Write(text []byte) (int, error) {
	begun := max(0, bytes.LastIndexByte(u.Bytes(), '\n'))
	n, err := u.said.Write(text)
	if failure.Match(u.Bytes()[begun:]) {
		u.end()
	}
	return n, err
}
