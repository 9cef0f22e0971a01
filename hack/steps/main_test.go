// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const makefile = `
good: ; @echo compiling
bad: ; @echo undefined: x; exit 3
`

// runSteps runs steps of makefile, and returns the displayed text and the log.
func runSteps(t *testing.T, args ...string) (shown, log string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run(t.Context(), &out, filepath.Join("logs", "build.log"), args)
	content, readErr := os.ReadFile(filepath.Join("logs", "build.log"))
	if readErr != nil {
		t.Fatal(readErr)
	}
	return out.String(), string(content), err
}

func TestStepsAreNumberedAndTheirOutputGoesToTheLog(t *testing.T) {
	shown, log, err := runSteps(t, "Kubernetes v1.36.3;good;about 6 min", "Images;good;")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)^Build output: logs/build.log
\[1/2\] Kubernetes v1.36.3, about 6 min the first time
\[1/2\] Kubernetes v1.36.3: \d+s
\[2/2\] Images
\[2/2\] Images: \d+s
$`)
	if !want.MatchString(shown) {
		t.Errorf("shown:\n%s", shown)
	}
	if log != "compiling\ncompiling\n" {
		t.Errorf("log = %q", log)
	}
}

func TestAStepThatFailsShowsTheLog(t *testing.T) {
	shown, _, err := runSteps(t, "First;bad;", "Second;good;")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"[1/2] First failed", "logs/build.log", "undefined: x"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if strings.Contains(shown, "Second") {
		t.Errorf("a step runs after one that failed:\n%s", shown)
	}
}

func TestAMalformedStepIsRefused(t *testing.T) {
	if _, err := parse([]string{"Kubernetes"}); err == nil || !strings.Contains(err.Error(), "NAME;TARGET;ESTIMATE") {
		t.Errorf("error = %v", err)
	}
}
