// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// command is a stage whose command is a shell script.
func command(script string) stage { return stage{command: []string{"sh", "-c", script}} }

// TestRun is about what becomes of a stage whose command does not do as it should: whoever reads the last line must see it.
func TestRun(t *testing.T) {
	const passes = `echo '{"Action":"pass","Package":"p","Test":"TestA"}'; `
	listing := errors.New("no such module")
	for _, tc := range []struct {
		name     string
		stage    stage
		passed   int
		failures []string
	}{
		{"passes", command(passes), 1, nil},
		{"passes and ends badly without a failed test", command(passes + "exit 3"), 1, []string{"FAIL unit: exit status 3"}},
		{"fails in a test, which says it", command(passes + `echo '{"Action":"fail","Package":"p","Test":"TestB"}'; exit 1`), 1, []string{"FAIL p TestB"}},
		{"is killed", command(passes + "kill -KILL $$"), 1, []string{"FAIL unit: signal: killed"}},
		{"prints what is no event", command("echo 'go: downloading'; " + passes), 1, nil},
		{"is not there", stage{command: []string{"/no/such/program"}}, 0, []string{"FAIL unit: starting /no/such/program: fork/exec /no/such/program: no such file or directory"}},
		{"has no folder to run in", stage{dir: "/no/such/folder", command: []string{"true"}}, 0, []string{"FAIL unit: starting true: chdir /no/such/folder: no such file or directory"}},
		{"does not know its packages", stage{packages: func() ([]string, error) { return nil, listing }}, 0, []string{"FAIL unit: listing packages: no such module"}},
	} {
		t.Run("When a stage "+tc.name+", it should be counted as it ended", func(t *testing.T) {
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

func TestEnvironmentOfAStage(t *testing.T) {
	dir := t.TempDir()
	s := command(`echo "$GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT $OWN" > said`)
	s.dir, s.env = dir, []string{"OWN=word"}
	if r := s.run("unit"); len(r.failures) > 0 {
		t.Fatal(r.failures)
	}
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil || string(said) != "1m word\n" {
		t.Errorf("the command saw %q (%v)", said, err)
	}
	s = command("")
	s.env = []string{"GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=5m"}
	s.command[2] = `test "$GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT" = 5m`
	if r := s.run("unit"); len(r.failures) > 0 {
		t.Errorf("a stage's own patience does not count: %v", r.failures)
	}
}

func TestGoTest(t *testing.T) {
	got, err := stage{args: []string{"-race", "-timeout=1m"}, packages: only("./a", "./b/...")}.goTest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields("go test -json -race -timeout=1m ./a ./b/..."), got); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
}

// TestSideBySide: chains run at once, the stages of a chain one after another, and nothing of any is lost.
func TestSideBySide(t *testing.T) {
	dir := t.TempDir()
	named := func(name, script string) string {
		s := command(script)
		s.dir = dir
		stages[name] = s
		t.Cleanup(func() { delete(stages, name) })
		return name
	}
	one := `echo '{"Action":"pass","Package":"p","Test":"TestA"}'; `
	// Each of two chains waits for the other, so that they end well only where they run at once.
	meet := func(own, other string) string {
		return one + "touch " + own + "; for i in $(seq 2400); do test -e " + other + " && exit 0; sleep 0.05; done; exit 9"
	}
	first := named("first", meet("first", "second"))
	second := named("second", "("+meet("second", "first")+") && exit 1")
	third := named("third", `test -e second || exit 1; echo '{"Action":"skip","Package":"p","Test":"TestB"}'`)
	all := sideBySide([][]string{{first}, {second, third}})
	if all.passed != 2 {
		t.Errorf("passed = %d, want 2", all.passed)
	}
	if diff := cmp.Diff([]string{"FAIL second: exit status 1"}, all.failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"SKIP p TestB: no reason given"}, all.skips); diff != "" {
		t.Errorf("a stage that fails keeps the next from running (-want +got):\n%s", diff)
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name     string
		events   []string
		failures []string
	}{
		{"two packages fail in one test each, both should be named", []string{
			`{"Action":"fail","Package":"a","Test":"TestA"}`, `{"Action":"fail","Package":"a"}`, `{"Action":"fail","Package":"b","Test":"TestA"}`, `{"Action":"fail","Package":"b"}`},
			[]string{"FAIL a TestA", "FAIL b TestA"}},
		{"a package fails whose name another begins with, it should be named", []string{
			`{"Action":"fail","Package":"a/b","Test":"TestA"}`, `{"Action":"fail","Package":"a/b"}`, `{"Action":"fail","Package":"a"}`},
			[]string{"FAIL a/b TestA", "FAIL a "}},
		{"a subtest fails, it and its test should be named", []string{
			`{"Action":"fail","Package":"a","Test":"TestA/sub"}`, `{"Action":"fail","Package":"a","Test":"TestA"}`, `{"Action":"fail","Package":"a"}`},
			[]string{"FAIL a TestA/sub", "FAIL a TestA"}},
		{"a test dies with its package, the package should be named", []string{
			`{"Action":"run","Package":"a","Test":"TestA"}`, `{"Action":"output","Package":"a","Output":"exit status 2\n"}`, `{"Action":"fail","Package":"a"}`},
			[]string{"FAIL a "}},
	} {
		t.Run("When "+tc.name, func(t *testing.T) {
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
		t.Errorf("what a test said that passed is kept: %v", r.output)
	}
}

func TestReason(t *testing.T) {
	for want, output := range map[string][]string{
		"no reason given":           nil,
		"a_test.go:7: needs root":   {"=== RUN   TestA\n", "=== PAUSE TestA\n", "\n", "    a_test.go:7: needs root\n", "--- SKIP: TestA (0.00s)\n"},
		"a_test.go:9: needs a disk": {"--- SKIP: TestA (0.00s)\n", "    a_test.go:9: needs a disk\n", "    a_test.go:10: and more\n"},
	} {
		if got := reason(output); got != want {
			t.Errorf("of %q the reason is %q and not %q", output, got, want)
		}
	}
}

// TestStaged: what has a stage of its own is not tested with all others, where it would want a machine for itself; all else is.
func TestStaged(t *testing.T) {
	for name, want := range map[string]bool{
		"hack/test": false, "test/machine": false, "test/devcluster/lifecycle": false, "test/journey": false, "test/standin/lab": false, "support/testenv": false,
		"test/devcluster": true, "test/ha": true, "test/takeover": true, "test/e2e": true, "test/integration/fields": true, "test/security": true,
		"hypershift-operator/security": false, "cmd/e2e": false, "test/hardware": false,
	} {
		if got := staged("github.com/openshift/hypershift/" + name); got != want {
			t.Errorf("that package %s has a stage of its own is %t", name, got)
		}
	}
}

// TestStages: the folders of each stage are there.
func TestStages(t *testing.T) {
	for name, s := range stages {
		if s.command != nil || name == "unit" {
			continue
		}
		packages, err := s.packages()
		if err != nil || len(packages) == 0 {
			t.Errorf("stage %s has no packages: %v", name, err)
		}
		for _, pkg := range packages {
			if !strings.HasPrefix(pkg, ".") {
				continue // go list said it
			}
			folder := filepath.Join("..", "..", s.dir, strings.TrimSuffix(pkg, "/..."))
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				t.Errorf("stage %s names a folder that is not there: %s", name, folder)
			}
		}
	}
}
