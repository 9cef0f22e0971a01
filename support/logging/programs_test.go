// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryProgramSetsALogger checks that each program sets a logger. In a program without one, controller-runtime
// prints a stack trace after half a minute.
func TestEveryProgramSetsALogger(t *testing.T) {
	const module, log = "github.com/openshift/hypershift/", "sigs.k8s.io/controller-runtime/pkg/log"
	root := filepath.Join("..", "..")
	list := func(args ...string) []string {
		cmd := exec.Command("go", append([]string{"list"}, args...)...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
		}
		return strings.Fields(string(out))
	}
	for _, program := range list("-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./...") {
		deps := list("-deps", program)
		if !strings.Contains(strings.Join(deps, "\n")+"\n", log+"\n") {
			continue
		}
		if !anySource(t, root, deps, module, "SetLogger(") {
			t.Errorf("%s uses controller-runtime and sets no logger; call log.SetLogger in main", program)
		}
	}
}

// anySource reports whether the source of one of this module's packages contains a text.
func anySource(t *testing.T, root string, packages []string, module, text string) bool {
	t.Helper()
	for _, pkg := range packages {
		folder, ours := strings.CutPrefix(pkg, module)
		if !ours {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(source), text) && !strings.HasSuffix(file, "_test.go") {
				return true
			}
		}
	}
	return false
}

// TestEventsHaveOneWriter checks that all programs create their event recorders with this package, which writes text of
// tenants in one line.
func TestEventsHaveOneWriter(t *testing.T) {
	others := regexp.MustCompile(`\b(ctrl\.NewManager|manager\.New|cluster\.New)\(|\bGetEventRecorderFor\(|\bNewBroadcaster\(|` +
		`\b(corev1|eventsv1)\.Event\{`)
	root := filepath.Join("..", "..")
	ours := filepath.Join(root, "support", "logging")
	tests := filepath.Join(root, "test")
	read := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == ours || path == tests || path != root && strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		if found := others.Find(source); found != nil && !strings.Contains(path, filepath.Join("support", "testenv")) {
			t.Errorf("%s uses %s; create managers and clusters with support/program", path, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 500 {
		t.Errorf("only %d files were read", read)
	}
}
