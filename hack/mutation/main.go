// SPDX-License-Identifier: Apache-2.0

// Command mutation checks whether the tests of a package would detect wrong code. It makes small wrong changes, one at
// a time, and runs the tests that reach each change. A change that fails no test has survived.
//
// Usage: go run ./hack/mutation --package PATTERN [--package PATTERN ...] [flags]. README.md describes how it works.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// options holds the flags of the command line.
type options struct {
	packages   list
	tests      list
	run, skip  string
	at         string
	like       pattern
	within     time.Duration
	seed       uint64
	max        int
	threshold  int
	equivalent string
	verbose    bool
}

// list is a flag that can be repeated.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// pattern is a flag with a regular expression. An empty one matches everything.
type pattern struct{ *regexp.Regexp }

func (p *pattern) String() string {
	if p.Regexp == nil {
		return ""
	}
	return p.Regexp.String()
}

// Set implements flag.Value.
func (p *pattern) Set(s string) (err error) {
	p.Regexp, err = regexp.Compile(s)
	return err
}

func (p *pattern) matches(m *mutant) bool { return p.Regexp == nil || p.MatchString(m.String()) }

// errBelow reports that the tests of a package catch too few changes.
var errBelow = errors.New("under the threshold")

func main() {
	var o options
	flag.Var(&o.packages, "package", "package to change, a folder such as ./support/pause; may be repeated")
	flag.Var(&o.tests, "tests", "package whose tests count beside the changed package's own; may be repeated")
	flag.StringVar(&o.run, "run", "", "run only the tests whose name matches, as in go test")
	flag.StringVar(&o.skip, "skip", "", "skip the tests whose name matches, as in go test")
	flag.StringVar(&o.at, "at", "", "try only the changes of a file or line: reconciler.go or reconciler.go:42")
	flag.Var(&o.like, "like", "try only the changes whose line in the report matches a regular expression, such as 'Watches|from the list'")
	flag.DurationVar(&o.within, "within", 0, "begin no more changes of a package after this long, 0 for no limit")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.IntVar(&o.max, "max", 0, "how many changes to try for each package, 0 for all")
	flag.IntVar(&o.threshold, "threshold", 90, "fail when fewer percent are caught")
	flag.StringVar(&o.equivalent, "equivalent", "hack/mutation/equivalent.yaml", "file of the changes that change nothing, with reasons")
	flag.BoolVar(&o.verbose, "v", false, "print the changes that are caught too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := mutate(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		stop()
		os.Exit(1)
	}
}

// mutate tries the packages one after the other. It writes survivors as they are found, and a table at the end.
func mutate(ctx context.Context, o options, out io.Writer) error {
	if len(o.packages) == 0 {
		return errors.New("no package is named: give --package with a folder, such as --package ./support/pause")
	}
	known, err := readEquivalents(o.equivalent)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "seed %d\n", o.seed)
	var results []result
	for _, folder := range o.packages {
		start := time.Now()
		r, err := mutatePackage(ctx, o, folder, known, out)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		r.took = time.Since(start)
		results = append(results, r)
	}
	printTable(out, results)
	for _, r := range results {
		if r.percent() < o.threshold {
			return fmt.Errorf("%s: %d%% is %w of %d%%", r.folder, r.percent(), errBelow, o.threshold)
		}
	}
	return nil
}

// result counts what happened to the changes of one package.
type result struct {
	folder                     string
	mutants, unreached         int
	equivalent, caught, missed int
	took                       time.Duration
}

func (r result) percent() int {
	if r.caught+r.missed == 0 {
		return 100
	}
	return 100 * r.caught / (r.caught + r.missed)
}

func mutatePackage(ctx context.Context, o options, folder string, known []equivalent, out io.Writer) (result, error) {
	p, err := load(ctx, folder)
	if err != nil {
		return result{}, err
	}
	if err := p.mutate(); err != nil {
		return result{}, err
	}
	s, err := newSuite(ctx, p, slices.Concat(list{folder}, o.tests))
	if err != nil {
		return result{}, err
	}
	defer s.close()
	if err := s.trace(ctx, o.run, o.skip); err != nil {
		return result{}, err
	}
	r := result{folder: folder, mutants: len(p.mutants)}
	same, err := matching(known, p)
	if err != nil {
		return result{}, err
	}
	var candidates []*mutant
	for _, m := range p.mutants {
		switch {
		case !m.isAt(o.at), !o.like.matches(m):
		case same[m.id]:
			r.equivalent++
		case len(s.reached[m.id]) == 0:
			r.unreached++
			if o.at != "" || o.like.Regexp != nil {
				fmt.Fprintf(out, "unreached %s\n", m)
			}
		default:
			candidates = append(candidates, m)
		}
	}
	err = r.try(ctx, s, sample(candidates, o.seed, o.max), o, out)
	return r, err
}

// try counts which of the changes the suite catches, and prints those that survive.
func (r *result) try(ctx context.Context, s *suite, candidates []*mutant, o options, out io.Writer) error {
	start := time.Now()
	for _, m := range candidates {
		if o.within > 0 && time.Since(start) > o.within {
			fmt.Fprintf(out, "%s: %d of %d tried in %s\n", r.folder, r.caught+r.missed, len(candidates), o.within)
			return nil
		}
		caught, err := s.catches(ctx, m)
		if err != nil {
			return err
		}
		if !caught {
			r.missed++
			fmt.Fprintf(out, "survived %s\n", m)
			continue
		}
		r.caught++
		if o.verbose {
			fmt.Fprintf(out, "caught %s\n", m)
		}
	}
	return nil
}

func printTable(out io.Writer, results []result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PACKAGE\tCHANGES\tUNREACHED\tEQUIVALENT\tTRIED\tCAUGHT\tSURVIVED\tPERCENT\tTOOK")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d%%\t%s\n", r.folder, r.mutants, r.unreached, r.equivalent,
			r.caught+r.missed, r.caught, r.missed, r.percent(), r.took.Round(time.Second))
	}
	_ = w.Flush()
}
