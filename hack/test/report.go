// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// timing is the duration of a top-level test.
type timing struct {
	name string
	took time.Duration
}

// report counts the results of the tests of a stage.
type report struct {
	passed          int
	failures, skips []string
	timings         []timing

	verbose bool
	output  map[string][]string
}

func newReport(verbose bool) *report {
	return &report{verbose: verbose, output: map[string][]string{}}
}

func (r *report) add(other report) {
	r.passed += other.passed
	r.failures = append(r.failures, other.failures...)
	r.skips = append(r.skips, other.skips...)
}

// read reads the events of one go test.
func (r *report) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		r.take(e)
	}
}

func (r *report) take(e event) {
	key := e.Package + " " + e.Test
	if e.Test != "" && !strings.Contains(e.Test, "/") && e.Elapsed > 0 {
		r.timings = append(r.timings, timing{name: key, took: time.Duration(e.Elapsed * float64(time.Second))})
	}
	switch e.Action {
	case "output", "build-output":
		r.keep(e, key)
	case "pass":
		r.pass(e)
		delete(r.output, key)
	case "fail":
		r.fail(e, key)
	case "skip":
		if e.Test != "" {
			r.skips = append(r.skips, "SKIP "+key+": "+reason(r.output[key]))
		}
	}
}

func (r *report) keep(e event, key string) {
	if e.Action == "build-output" {
		fmt.Print(e.Output)
		return
	}
	if r.verbose && e.Test != "" && !strings.HasPrefix(e.Output, "=== ") {
		fmt.Print(e.Output)
	}
	r.output[key] = append(r.output[key], e.Output)
}

func (r *report) pass(e event) {
	if e.Test != "" {
		r.passed++
		return
	}
	fmt.Printf("ok   %s %.1fs\n", e.Package, e.Elapsed)
}

// fail counts a failed test, or a package that failed without naming one (it did not build, or panicked).
func (r *report) fail(e event, key string) {
	named := func(f string) bool { return strings.HasPrefix(f, "FAIL "+e.Package+" ") }
	if e.Test == "" && slices.ContainsFunc(r.failures, named) {
		fmt.Printf("FAIL %s %.1fs\n", e.Package, e.Elapsed)
		return
	}
	r.failures = append(r.failures, "FAIL "+key)
	if !r.verbose || e.Test == "" {
		fmt.Printf("--- FAIL %s\n%s", key, strings.Join(r.output[key], ""))
	}
}

// reason returns the output of a skipped test.
func reason(output []string) string {
	for _, line := range output {
		text := strings.TrimSpace(line)
		if text != "" && !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") {
			return text
		}
	}
	return "no reason given"
}
