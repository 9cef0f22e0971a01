// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// command returns a stage whose command is a shell script that prints events.
func command(script string) stage { return stage{command: []string{"sh", "-c", script}, events: true} }

// TestRun checks that the last line shows a stage whose command misbehaves.
func TestRun(t *testing.T) {
	const passes = `echo '{"Action":"pass","Package":"p","Test":"TestA"}'; `
	listing := errors.New("no such module")
	for _, tc := range []struct {
		name     string
		stage    stage
		passed   int
		failures []string
	}{
		{"tests pass", command(passes), 1, nil},
		{"tests pass, the command fails", command(passes + "exit 3"), 1, []string{"FAIL unit: exit status 3"}},
		{
			"a failed test is counted once",
			command(passes + `echo '{"Action":"fail","Package":"p","Test":"TestB"}'; exit 1`), 1, []string{"FAIL p TestB"},
		},
		{"the command is killed", command(passes + "kill -KILL $$"), 1, []string{"FAIL unit: signal: killed"}},
		{"a line is not a JSON event", command("echo 'go: downloading'; " + passes), 1, nil},
		{
			"the command does not exist", stage{command: []string{"/no/such/program"}, events: true}, 0,
			[]string{"FAIL unit: starting /no/such/program: fork/exec /no/such/program: no such file or directory"},
		},
		{
			"the packages cannot be listed", stage{packages: func() ([]string, error) { return nil, listing }}, 0,
			[]string{"FAIL unit: listing packages: no such module"},
		},
		{"a command without events passes", stage{command: []string{"echo", "built"}}, 1, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			r := tc.stage.run("unit")
			if r.passed != tc.passed {
				t.Errorf("passed = %d, want %d", r.passed, tc.passed)
			}
			if diff := cmp.Diff(tc.failures, r.failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunNamesTheLogOfACommandThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	r := stage{command: []string{"sh", "-c", "echo broken; exit 2"}}.run("lint")
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "lint.log") {
		t.Fatalf("failures = %q, want one with the log file", r.failures)
	}
	file := strings.TrimPrefix(r.failures[0][strings.Index(r.failures[0], "see "):], "see ")
	if content, err := os.ReadFile(file); err != nil || string(content) != "broken\n" {
		t.Errorf("log = %q (%v)", content, err)
	}
}

func TestEnvironmentOfAStage(t *testing.T) {
	dir := t.TempDir()
	s := command(`echo "$GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT $OWN" > said`)
	s.dir, s.env = dir, []string{"OWN=word"}
	if r := s.run("unit"); len(r.failures) > 0 {
		t.Fatal(r.failures)
	}
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil || string(said) != "5m word\n" {
		t.Errorf("the command saw %q (%v)", said, err)
	}
	s = command(`test "$GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT" = 7m`)
	s.env = []string{"GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=7m"}
	if r := s.run("unit"); len(r.failures) > 0 {
		t.Errorf("the stage's own timeout has no effect: %v", r.failures)
	}
}

func TestArgv(t *testing.T) {
	got, err := stage{args: []string{"-race"}, packages: only("./a", "./b/..."), nice: true}.argv()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields("nice -n 19 go test -json -race ./a ./b/..."), got); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
}

// named registers a stage for the duration of a test.
func named(t *testing.T, dir, name, script string) string {
	s := command(script)
	s.dir = dir
	stages[name] = s
	t.Cleanup(func() { delete(stages, name) })
	return name
}

func TestRunPhases(t *testing.T) {
	dir := t.TempDir()
	const one = `echo '{"Action":"pass","Package":"p","Test":"TestA"}'; `
	// Each of two chains waits for the other: both end only if they run at the same time.
	meet := func(own, other string) string {
		return one + "touch " + own + "; for i in $(seq 2400); do test -e " + other + " && exit 0; sleep 0.05; done; exit 9"
	}
	first := named(t, dir, "first", meet("first", "second"))
	second := named(t, dir, "second", "("+meet("second", "first")+") && exit 1")
	third := named(t, dir, "third", `test -e second || exit 1; echo '{"Action":"skip","Package":"p","Test":"TestB"}'`)
	never := named(t, dir, "never", "touch never")
	var all report
	for _, r := range runPhases([]phase{{{first}, {second, third}}, {{never}}}) {
		all.add(r.report)
	}
	if all.passed != 2 {
		t.Errorf("passed = %d, want 2", all.passed)
	}
	if diff := cmp.Diff([]string{"FAIL second: exit status 1"}, all.failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"SKIP p TestB: no reason given"}, all.skips); diff != "" {
		t.Errorf("a stage that fails stops its chain (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "never")); err == nil {
		t.Error("a phase runs after one with a failure")
	}
}

func TestPrintTable(t *testing.T) {
	r := newReport(false)
	r.read(strings.NewReader(strings.Join([]string{
		`{"Action":"pass","Package":"p","Test":"TestFast","Elapsed":0.5}`,
		`{"Action":"pass","Package":"p","Test":"TestSlow","Elapsed":90}`,
		`{"Action":"pass","Package":"p","Test":"TestSlow/sub","Elapsed":90}`,
	}, "\n")))
	var out strings.Builder
	printTable(&out, []result{{report: *r, name: "unit", wall: 2 * time.Minute, processor: time.Minute}})
	want := `
STAGE  WALL  PROCESSOR  PASSED  FAILED  SKIPPED
unit   2m0s  1m0s       3       0       0

SLOWEST TESTS  WALL
p TestSlow     1m30s
p TestFast     500ms

`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name     string
		events   []string
		failures []string
	}{
		{"names both of two failed packages", []string{
			`{"Action":"fail","Package":"a","Test":"TestA"}`, `{"Action":"fail","Package":"a"}`, `{"Action":"fail","Package":"b","Test":"TestA"}`, `{"Action":"fail","Package":"b"}`},
			[]string{"FAIL a TestA", "FAIL b TestA"}},
		{"names a package whose name is the beginning of another", []string{
			`{"Action":"fail","Package":"a/b","Test":"TestA"}`, `{"Action":"fail","Package":"a/b"}`, `{"Action":"fail","Package":"a"}`},
			[]string{"FAIL a/b TestA", "FAIL a "}},
		{"names a failed subtest and its test", []string{
			`{"Action":"fail","Package":"a","Test":"TestA/sub"}`, `{"Action":"fail","Package":"a","Test":"TestA"}`, `{"Action":"fail","Package":"a"}`},
			[]string{"FAIL a TestA/sub", "FAIL a TestA"}},
		{"names a package that died", []string{
			`{"Action":"run","Package":"a","Test":"TestA"}`, `{"Action":"output","Package":"a","Output":"exit status 2\n"}`, `{"Action":"fail","Package":"a"}`},
			[]string{"FAIL a "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newReport(false)
			r.read(strings.NewReader(strings.Join(tc.events, "\n")))
			if diff := cmp.Diff(tc.failures, r.failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutputIsNotKept(t *testing.T) {
	r := newReport(false)
	r.read(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestA","Output":"much\n"}` + "\n" + `{"Action":"pass","Package":"p","Test":"TestA"}`))
	if len(r.output) > 0 {
		t.Errorf("the output of a passed test is kept: %v", r.output)
	}
}

func TestReason(t *testing.T) {
	for want, output := range map[string][]string{
		"no reason given":           nil,
		"a_test.go:7: needs root":   {"=== RUN   TestA\n", "=== PAUSE TestA\n", "\n", "    a_test.go:7: needs root\n", "--- SKIP: TestA (0.00s)\n"},
		"a_test.go:9: needs a disk": {"--- SKIP: TestA (0.00s)\n", "    a_test.go:9: needs a disk\n", "    a_test.go:10: and more\n"},
	} {
		if got := reason(output); got != want {
			t.Errorf("reason(%q) = %q, want %q", output, got, want)
		}
	}
}

func TestHasOwnStage(t *testing.T) {
	for name, want := range map[string]bool{
		"hack/test": false, "test/machine": false, "test/devcluster/lifecycle": false, "test/journey": false, "test/standin/lab": false, "support/testenv": false,
		"test/devcluster": true, "test/ha": true, "test/takeover": true, "test/e2e": true, "test/integration/fields": true, "test/security": true,
		"hypershift-operator/security": false, "cmd/e2e": false, "test/hardware": false,
	} {
		if got := hasOwnStage("github.com/openshift/hypershift/" + name); got != want {
			t.Errorf("hasOwnStage(%s) = %t", name, got)
		}
	}
}

func TestStagesNameExistingFolders(t *testing.T) {
	for name, s := range stages {
		// `go list` provides the packages of the stages unit and packages. The packages of the stage repeat depend on
		// the changes.
		if s.command != nil || name == "unit" || name == "packages" || name == "repeat" {
			continue
		}
		packages, err := s.packages()
		if err != nil || len(packages) == 0 {
			t.Errorf("stage %s has no packages: %v", name, err)
		}
		for _, pkg := range packages {
			if !strings.HasPrefix(pkg, ".") {
				continue
			}
			folder := filepath.Join("..", "..", s.dir, strings.TrimSuffix(pkg, "/..."))
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				t.Errorf("stage %s names a folder that is not there: %s", name, folder)
			}
		}
	}
}

func TestLongestPackagesComeFirst(t *testing.T) {
	t.Chdir("../..")
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range longest {
		if got := strings.TrimPrefix(all[i], module+"/"); got != want {
			t.Errorf("package %d is %s, want %s", i, got, want)
		}
	}
	if !slices.Contains(all, module+"/hack/test") {
		t.Error("other packages are missing")
	}
}
