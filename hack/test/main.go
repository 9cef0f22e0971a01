// SPDX-License-Identifier: Apache-2.0

// Command test runs the stages of our tests. It prints a line when a stage starts and ends, then a table of all stages
// with the ten slowest tests. Its last line is how many tests passed, failed and were skipped.
//
// Usage: go run ./hack/test PHASE...
//
// Phases run one after another. A phase is one or more chains joined by a plus, which run in parallel. A chain is one
// or more stages joined by commas, which run one after another: build e2e+lint,unit. A phase with a failure is the
// last.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	phases, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "test: %v\n", err)
		os.Exit(2)
	}
	results := runPhases(phases)
	var all report
	for _, r := range results {
		all.add(r.report)
	}
	for _, line := range slices.Concat(all.skips, all.failures) {
		fmt.Println(line)
	}
	printTable(os.Stdout, results)
	fmt.Printf("%d passed, %d failed, %d skipped\n", all.passed, len(all.failures), len(all.skips))
	if len(all.failures) > 0 {
		os.Exit(1)
	}
}

// phase is a list of chains that run side by side. A chain is a list of stages that run one after another.
type phase [][]string

// parse parses the phases to run.
func parse(args []string) ([]phase, error) {
	if len(args) == 0 {
		return nil, errors.New("name the stages to run, as in: build e2e+lint,unit; known stages: " + known())
	}
	var phases []phase
	for _, arg := range args {
		var p phase
		for chain := range strings.SplitSeq(arg, "+") {
			names := strings.Split(chain, ",")
			for _, name := range names {
				if _, ok := stages[name]; !ok {
					return nil, fmt.Errorf("unknown stage %q; known stages: %s", name, known())
				}
			}
			p = append(p, names)
		}
		phases = append(phases, p)
	}
	return phases, nil
}

func known() string { return strings.Join(slices.Sorted(maps.Keys(stages)), ", ") }
