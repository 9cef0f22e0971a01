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
	// quick is how long the tests that are asked first may take together.
	quick = 2 * time.Second
	// growth is how much longer than the tests asked before those may take that are asked next.
	growth = 4
)

// batches puts tests into the order in which a change is most cheaply caught, and says which are asked together: a process for each
// would start a kube-apiserver each time, and one for all would go on for minutes where the first test tells. A test that takes little
// time, or has caught others, comes first.
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

// price is what it costs to ask a test, set against the hope that it tells.
func (t *test) price() time.Duration { return t.took / time.Duration(1+t.caught) }

func total(tests []*test) (sum time.Duration) {
	for _, t := range tests {
		sum += t.took
	}
	return sum
}

// patience has Gomega's waits that name no timeout end when tests would have been through twice: what a change prevents never comes.
func patience(took time.Duration) string {
	return "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=" + max(10*time.Second, min(time.Minute, 2*took)).String()
}

var failure = regexp.MustCompile(`(?m)^ *--- FAIL: ([^/\s]+)\S* \(`)

// credit notes which of the tests failed. One that panicked or hung is not named.
func credit(tests []*test, log []byte) {
	named := failure.FindSubmatch(log)
	for _, t := range tests {
		if named != nil && t.name == string(named[1]) {
			t.caught++
		}
	}
}

// untilFailure keeps what tests say and ends them once one has failed: what it would still clean up is ended with it. The buffer is a field,
// since by its other methods a copy would go past Write.
type untilFailure struct {
	said bytes.Buffer
	end  context.CancelFunc
}

// Bytes are all that was said.
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
