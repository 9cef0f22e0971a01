// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// testSources are the test files of a package.
type testSources struct {
	Dir                       string
	TestGoFiles, XTestGoFiles []string

	// announced maps the paths of the files to their text, in which each test announces its name at its start.
	announced map[string][]byte
	names     []string
	parallel  map[string]bool
}

func readTests(ctx context.Context, folder string) (testSources, error) {
	s := testSources{announced: map[string][]byte{}, parallel: map[string]bool{}}
	out, err := output(exec.CommandContext(ctx, "go", "list", "-json=Dir,TestGoFiles,XTestGoFiles", folder))
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		return s, fmt.Errorf("finding the tests of %s: %w", folder, err)
	}
	for _, name := range slices.Concat(s.TestGoFiles, s.XTestGoFiles) {
		if err := s.announce(filepath.Join(s.Dir, name)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// announce makes each test of a file record its start in the environment, where the helpers of the changed package read
// it.
func (s *testSources) announce(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading tests: %w", err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("reading tests: %w", err)
	}
	offset := func(pos token.Pos) int { return fset.Position(pos).Offset }
	edits := []edit{{offset: offset(file.Name.End()), text: `; import mutantOS "os"`}}
	for _, declared := range file.Decls {
		function, ok := declared.(*ast.FuncDecl)
		if !ok || !isTest(function) {
			continue
		}
		name := function.Name.Name
		body := text[offset(function.Body.Pos()):offset(function.Body.End())]
		s.names = append(s.names, name)
		s.parallel[name] = bytes.Contains(body, []byte(".Parallel()"))
		edits = append(edits, edit{offset: offset(function.Body.Lbrace) + 1, text: fmt.Sprintf(" _ = mutantOS.Setenv(%q, %q);", "MUTANT_TEST", name)})
	}
	if len(edits) > 1 {
		s.announced[path] = apply(text, edits)
	}
	return nil
}

func isTest(f *ast.FuncDecl) bool {
	if f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || len(f.Type.Params.List) != 1 {
		return false
	}
	pointer, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	of, ok := pointer.X.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "T"
}

func testsOf(p program, sources testSources) (tests []*test) {
	for _, name := range sources.names {
		tests = append(tests, &test{program: p, name: name, parallel: sources.parallel[name]})
	}
	return tests
}

// trace runs the tests once without changes, to learn which changes each test reaches and how long it takes. All tests
// that do not run in parallel share one process, since each process starts a kube-apiserver.
func (s *suite) trace(ctx context.Context, run, skip string) error {
	wanted, err := regexp.Compile(run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	unwanted, err := regexp.Compile(skip)
	if err != nil {
		return fmt.Errorf("--skip: %w", err)
	}
	s.tests = slices.DeleteFunc(s.tests, func(t *test) bool {
		return !wanted.MatchString(t.name) || skip != "" && unwanted.MatchString(t.name)
	})
	for _, program := range s.programs {
		var together []*test
		for _, t := range s.tests {
			switch {
			case t.program != program:
			case t.parallel:
				if err := s.traceTests(ctx, t); err != nil {
					return err
				}
			default:
				together = append(together, t)
			}
		}
		if len(together) > 0 {
			if err := s.traceTests(ctx, together...); err != nil {
				return err
			}
		}
	}
	return nil
}

// traceTests runs tests in one process. If one fails, it runs that test and the later ones again once: a busy machine
// may have failed to start a kube-apiserver.
func (s *suite) traceTests(ctx context.Context, tests ...*test) error {
	var failed *test
	for {
		left, err := s.traceOnce(ctx, tests)
		if err == nil || ctx.Err() != nil || len(left) == 0 || left[0] == failed {
			return err
		}
		failed, tests = left[0], left
	}
}

// traceOnce returns the first failed test and all later ones, and an error that names it.
func (s *suite) traceOnce(ctx context.Context, tests []*test) (left []*test, err error) {
	file := filepath.Join(s.temporary, "trace")
	defer os.RemoveAll(file)
	log, failure := s.run(ctx, tests, time.Hour, "MUTANT_TRACE="+file, patience(time.Minute))
	took := passed(log)
	for _, t := range tests {
		if duration, ok := took[t.name]; ok {
			t.took = duration
		} else {
			left = append(left, t)
		}
	}
	lines, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return left, fmt.Errorf("reading what tests reached: %w", err)
	}
	if err := s.note(string(lines), tests, left); err != nil {
		return left, err
	}
	switch {
	case failure == nil:
		return nil, nil
	case len(left) == 0:
		return nil, fmt.Errorf("the tests of %s fail with nothing changed: %w\n%s", tests[0].dir, failure, log)
	}
	return left, fmt.Errorf("%s fails with nothing changed: %w\n%s", left[0].name, failure, log)
}

// note reads lines with a test and a change that it reached. Every test reaches what a package does before the first
// test begins.
func (s *suite) note(lines string, tests, left []*test) error {
	for line := range strings.Lines(lines) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("reading what tests reached: %w", err)
		}
		for _, t := range tests {
			if (name == "-" || name == t.name) && !slices.Contains(left, t) && !slices.Contains(s.reached[id], t) {
				s.reached[id] = append(s.reached[id], t)
			}
		}
	}
	return nil
}

var success = regexp.MustCompile(`(?m)^--- (?:PASS|SKIP): (\S+) \(([0-9.]+)s\)`)

// passed returns the tests that passed or were skipped, with their duration.
func passed(log []byte) map[string]time.Duration {
	took := map[string]time.Duration{}
	for _, line := range success.FindAllSubmatch(log, -1) {
		seconds, _ := strconv.ParseFloat(string(line[2]), 64)
		took[string(line[1])] = time.Duration(seconds * float64(time.Second))
	}
	return took
}
