// SPDX-License-Identifier: Apache-2.0

// Command fuzz runs the fuzz targets of all modules in the given folders one by one, since `go test -fuzz` runs only
// one. Usage: go run ./hack/fuzz [-time 10m] [-only PATTERN] [-workers N] [-json] FOLDER...
//
// An interrupt, not -fuzztime, ends each target. Until Go 1.27, go test reports a deadline on a busy machine as a
// failure (https://go.dev/issue/75804). `go test -exec` runs the test program under this one, as fuzz
// -interrupt-after 10m PROGRAM ARGUMENT...
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// target is one FuzzX function.
type target struct {
	// module is the folder of its go.mod; pkg is the package.
	module, pkg, name string
}

func main() {
	each := flag.Duration("time", 10*time.Minute, "how long each target runs")
	only := flag.String("only", "", "regular expression that a target's package and name must match, as in nodeinput.FuzzRead")
	workers := flag.Int("workers", 0, "how many processes feed a target; 0 means one a CPU")
	asJSON := flag.Bool("json", false, "print the events of `go test -json`")
	after := flag.Duration("interrupt-after", 0, "run the program that follows, and interrupt it when this time is over")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *after > 0 {
		os.Exit(interrupted(ctx, *after, flag.Args()))
	}
	self, err := os.Executable()
	if err == nil {
		err = run(ctx, flag.Args(), goTest(self, *each, *workers, *asJSON), *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// run joins the failures of all targets: a crash of one does not keep the next from running.
func run(ctx context.Context, modules []string, args []string, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var failures []error
	ran := 0
	for _, module := range modules {
		targets, err := discover(ctx, module)
		if err != nil {
			return err
		}
		for _, t := range targets {
			if !wanted.MatchString(t.pkg+"."+t.name) || ctx.Err() != nil {
				continue
			}
			ran++
			if err := t.fuzz(ctx, args, os.Stdout); err != nil {
				failures = append(failures, fmt.Errorf("%s.%s: %w; the input that crashed it is in its testdata/fuzz/%s; fix the bug and keep the file", t.pkg, t.name, err, t.name))
			}
		}
	}
	if ran == 0 {
		return errors.New("there is no target of that name")
	}
	return errors.Join(append(failures, ctx.Err())...)
}

// interrupted runs a program, interrupts it after the given time, and returns its exit status.
func interrupted(ctx context.Context, after time.Duration, program []string) int {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The exit status shows whether the program handled the interrupt successfully.
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		return 1
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}

// goTest returns the command for each target; self is this program, which interrupts the target.
func goTest(self string, each time.Duration, workers int, asJSON bool) []string {
	args := []string{"test", "-run", "^$", "-exec", fmt.Sprintf("%s -interrupt-after %s", self, each), "-timeout", "0"}
	if workers > 0 {
		args = append(args, "-parallel", strconv.Itoa(workers))
	}
	if asJSON {
		args = append(args, "-json")
	}
	return args
}

func (t target) fuzz(ctx context.Context, args []string, out io.Writer) error {
	fmt.Fprintf(out, "=== %s.%s\n", t.pkg, t.name)
	cmd := exec.CommandContext(ctx, "go", slices.Concat(args, []string{"-fuzz", "^" + t.name + "$", t.pkg})...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.module, out, out
	return cmd.Run()
}

// listed is the output of `go list -json` for a package.
type listed struct {
	Dir, ImportPath           string
	TestGoFiles, XTestGoFiles []string
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\) `)

// discover returns the targets in the test files that this system would build.
func discover(ctx context.Context, module string) ([]target, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir, cmd.Stderr = module, os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s: %w", module, err)
	}
	var targets []target
	for packages := json.NewDecoder(bytes.NewReader(raw)); packages.More(); {
		var p listed
		if err := packages.Decode(&p); err != nil {
			return nil, fmt.Errorf("reading the packages of %s: %w", module, err)
		}
		names, err := declared(p.Dir, append(p.TestGoFiles, p.XTestGoFiles...))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			targets = append(targets, target{module: module, pkg: p.ImportPath, name: name})
		}
	}
	return targets, nil
}

func declared(dir string, files []string) ([]string, error) {
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		for _, match := range declaration.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names, nil
}
