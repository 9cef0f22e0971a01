// SPDX-License-Identifier: Apache-2.0

// Command test runs the stages of our tests and says, in its last line, how many passed, failed and were skipped.
//
// Usage: go run ./hack/test CHAIN[+CHAIN...] where a CHAIN is stages that run one after another, joined by commas, and chains that are joined by
// a plus run side by side, as in e2e+unit,fuzz. Without one it names the stages.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// stage is one run of go test, or of a command that prints its events.
type stage struct {
	dir      string
	env      []string
	args     []string
	packages func() ([]string, error)
	command  []string
}

var stages = map[string]stage{
	// Each test has its own patience: this is for what hangs for good, beside all else that runs.
	"unit":        {args: []string{"-timeout=40m"}, packages: unit},
	"api":         {dir: "api", args: []string{"-timeout=10m"}, packages: only("./...")},
	"race":        {env: []string{"CGO_ENABLED=1"}, args: []string{"-race", "-timeout=10m"}, packages: only(racy...)},
	"race-all":    {env: []string{"CGO_ENABLED=1", "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=3m"}, args: []string{"-race", "-timeout=60m"}, packages: withoutEnvironment},
	"integration": {args: []string{"-timeout=20m"}, packages: only(integration...)},
	"management":  {args: []string{"-timeout=20m"}, packages: only(management...)},
	"fuzz":        {command: []string{"nice", "-n", "19", "go", "run", "./hack/fuzz", "-json", "-time", "10s", "-workers", "1", ".", "api"}},
	// The environment exists once a host: what brings one up of its own comes before the journey, in the same chain.
	"environment": {args: []string{"-timeout=20m"}, packages: only("./test/devcluster")},
	"ha":          {args: []string{"-timeout=90m", "-count=1", "-p=1", "-v", "-run=TestHighlyAvailable|TestTwoNodes"}, packages: only("./test/ha")},
	"ha-short":    {args: []string{"-timeout=40m", "-count=1", "-p=1", "-v", "-short", "-run=TestHighlyAvailable"}, packages: only("./test/ha")},
	"rotation":    {args: []string{"-timeout=3h", "-count=1", "-p=1", "-v", "-run=TestRotation"}, packages: only("./test/ha")},
	"takeover":    {args: []string{"-timeout=15m", "-count=1", "-v"}, packages: only("./test/takeover")},
	"e2e":         {args: []string{"-timeout=75m", "-count=1", "-p=1", "-v"}, packages: only("./test/e2e/...")},
}

// patience is how long Gomega's Eventually waits where a test does not say: its own second is over before a busy machine has started a process.
const patience = "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=1m"

// management is what depends on the kube-apiserver that a management cluster happens to run: our CRDs and their rules, the
// webhook, how things are applied, and installing.
var management = []string{
	"./support/testenv/...", "./support/manifest/...", "./hypershift-operator/webhook/...", "./cmd/install/...", "./cmd/root/...",
	"./test/integration/...", "./test/security/...",
}

// integration is what crosses packages, with a kube-apiserver.
var integration = []string{"./test/integration/...", "./test/security/...", "./test/clusterapi/..."}

// racy is what starts goroutines of its own and can be compiled anew in a minute: nothing of Kubernetes is below it. The stage race-all has
// all packages, and takes more than an hour.
var racy = []string{
	"./test/maas-simulator", "./test/maas-simulator/api", "./test/maas-simulator/boot", "./test/maas-simulator/faults",
	"./test/maas-simulator/lifecycle", "./test/maas-simulator/load", "./test/maas-simulator/oauth", "./test/maas-simulator/store",
	"./test/machine/network", "./test/machine/units", "./test/devcluster/images", "./hack/test",
}

func main() {
	chains, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "test: %v\n", err)
		os.Exit(2)
	}
	all := sideBySide(chains)
	for _, line := range slices.Concat(all.skips, all.failures) {
		fmt.Println(line)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", all.passed, len(all.failures), len(all.skips))
	if len(all.failures) > 0 {
		os.Exit(1)
	}
}

// parse reads which stages are to run: chains of them, side by side.
func parse(args []string) ([][]string, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("name the stages, as in e2e+unit,fuzz, of %s", known())
	}
	var chains [][]string
	for chain := range strings.SplitSeq(args[0], "+") {
		names := strings.Split(chain, ",")
		for _, name := range names {
			if _, ok := stages[name]; !ok {
				return nil, fmt.Errorf("%q is no stage; name one of %s", name, known())
			}
		}
		chains = append(chains, names)
	}
	return chains, nil
}

func known() string { return strings.Join(slices.Sorted(maps.Keys(stages)), ", ") }

// sideBySide runs chains of stages at the same time.
func sideBySide(chains [][]string) report {
	reports := make(chan report, len(chains))
	for _, names := range chains {
		go func() {
			var chain report
			for _, name := range names {
				chain.add(stages[name].run(name))
			}
			reports <- chain
		}()
	}
	var all report
	for range chains {
		all.add(<-reports)
	}
	return all
}

// run runs one stage and prints its progress, a line a package.
func (s stage) run(name string) report {
	start := time.Now()
	fmt.Printf("=== %s\n", name)
	command, err := s.goTest()
	if err != nil {
		return report{failures: []string{fmt.Sprintf("FAIL %s: listing packages: %v", name, err)}}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = s.dir, slices.Concat(os.Environ(), []string{patience}, s.env)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return report{failures: []string{fmt.Sprintf("FAIL %s: starting %s: %v", name, command[0], err)}}
	}
	r := newReport(slices.Contains(s.args, "-v"))
	r.read(out)
	if err := cmd.Wait(); err != nil && len(r.failures) == 0 {
		r.failures = append(r.failures, fmt.Sprintf("FAIL %s: %v", name, err))
	}
	fmt.Printf("=== %s: %d passed, %d failed, %d skipped in %s\n", name, r.passed, len(r.failures), len(r.skips), time.Since(start).Round(time.Second))
	return *r
}

// goTest is the stage's command.
func (s stage) goTest() ([]string, error) {
	if s.command != nil {
		return s.command, nil
	}
	packages, err := s.packages()
	return slices.Concat([]string{"go", "test", "-json"}, s.args, packages), err
}

// only is a fixed list of packages.
func only(patterns ...string) func() ([]string, error) {
	return func() ([]string, error) { return patterns, nil }
}

// unit lists all packages, without those that have a stage of their own.
func unit() ([]string, error) {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(out)), staged), nil
}

// withoutEnvironment lists what runs as one process beside kube-apiservers: the environment's own binaries are built without the detector.
func withoutEnvironment() ([]string, error) {
	packages, err := unit()
	return append(packages, integration...), err
}

// staged tells whether a package has a stage of its own.
func staged(pkg string) bool {
	return strings.HasSuffix(pkg, "/test/devcluster") || strings.HasSuffix(pkg, "/test/ha") || slices.ContainsFunc([]string{"integration", "security", "clusterapi", "takeover", "e2e"}, func(part string) bool {
		return strings.Contains(pkg, "/test/"+part)
	})
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// report counts what the tests of a stage did.
type report struct {
	passed          int
	failures, skips []string

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

// read takes in the events of one go test.
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
	if e.Test == "" && slices.ContainsFunc(r.failures, func(f string) bool { return strings.HasPrefix(f, "FAIL "+e.Package+" ") }) {
		fmt.Printf("FAIL %s %.1fs\n", e.Package, e.Elapsed)
		return
	}
	r.failures = append(r.failures, "FAIL "+key)
	if !r.verbose || e.Test == "" {
		fmt.Printf("--- FAIL %s\n%s", key, strings.Join(r.output[key], ""))
	}
}

// reason is what a skipped test said of why.
func reason(output []string) string {
	for _, line := range output {
		text := strings.TrimSpace(line)
		if text != "" && !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") {
			return text
		}
	}
	return "no reason given"
}
