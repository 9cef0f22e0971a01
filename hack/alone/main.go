// SPDX-License-Identifier: Apache-2.0

// Command alone runs each subtest alone, as a developer does to debug it. A subtest that passes only after an earlier
// one fails here.
//
// Usage: go run ./hack/alone PACKAGE... All subtests of the packages must pass together.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := check(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "alone:", err)
		stop()
		os.Exit(1)
	}
}

// check joins the errors of all packages that match the patterns.
func check(ctx context.Context, patterns []string, out io.Writer) error {
	if len(patterns) == 0 {
		return errors.New("no package is named: give a folder, such as ./support/pause, or more")
	}
	listed, err := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}"}, patterns...)...).Output()
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	programs, err := os.MkdirTemp("", "alone-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	var errs []error
	for dir := range strings.FieldsSeq(string(listed)) {
		p := testProgram{dir: dir, file: filepath.Join(programs, "test")}
		if err := p.check(ctx, out); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// testProgram is the test binary of a package, which runs in its folder.
type testProgram struct{ dir, file string }

func (p testProgram) check(ctx context.Context, out io.Writer) error {
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", p.file, ".")
	compile.Dir = p.dir
	if said, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the tests: %w\n%s", err, said)
	}
	together, err := p.run(ctx)
	if err != nil {
		return fmt.Errorf("the tests fail together already: %w\n%s", err, together)
	}
	names := subtests(together)
	var errs []error
	for _, name := range names {
		switch said, err := p.run(ctx, "-test.run", pattern(name)); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s fails alone: %w\n%s", name, err, said))
		case !slices.Contains(subtests(said), name):
			errs = append(errs, fmt.Errorf("%s does not run alone: it must not depend on an earlier subtest", name))
		}
	}
	fmt.Fprintf(out, "%s: %d of %d subtests pass alone\n", p.dir, len(names)-len(errs), len(names))
	return errors.Join(errs...)
}

func (p testProgram) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.file, append([]string{"-test.v"}, args...)...)
	cmd.Dir = p.dir
	said, err := cmd.CombinedOutput()
	return string(said), err
}

var began = regexp.MustCompile(`(?m)^=== RUN +(\S+)$`)

// subtests returns the names of the tests that ran and have no subtests.
func subtests(said string) []string {
	var all, leaves []string
	for _, line := range began.FindAllStringSubmatch(said, -1) {
		all = append(all, line[1])
	}
	for _, name := range all {
		if strings.Contains(name, "/") && !slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			leaves = append(leaves, name)
		}
	}
	return leaves
}

// pattern returns a -run pattern that matches one test: an expression for each part of the name.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}
