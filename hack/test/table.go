// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// slowest is the number of slow tests in the table.
const slowest = 10

// printTable prints the duration of each stage, and the slowest tests.
func printTable(out io.Writer, results []result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSTAGE\tWALL\tPROCESSOR\tPASSED\tFAILED\tSKIPPED")
	var tests []timing
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\n", r.name, r.wall, r.processor.Round(time.Second), r.passed, len(r.failures), len(r.skips))
		tests = append(tests, r.timings...)
	}
	slices.SortStableFunc(tests, func(a, b timing) int { return cmp.Compare(b.took, a.took) })
	fmt.Fprintln(w, "\nSLOWEST TESTS\tWALL")
	for _, t := range tests[:min(slowest, len(tests))] {
		fmt.Fprintf(w, "%s\t%s\n", t.name, t.took.Round(100*time.Millisecond))
	}
	fmt.Fprintln(w)
	_ = w.Flush()
}
