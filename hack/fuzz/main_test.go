// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// module writes a Go module with one package.
func module(t *testing.T, test string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.26\n",
		"m.go":      "package m\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\n" + test,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDiscover(t *testing.T) {
	t.Run("When a module has fuzz targets, it should find them and no helpers with similar names", func(t *testing.T) {
		dir := module(t, "func FuzzA(f *testing.F) { f.Skip() }\nfunc FuzzyHelper(n int) {}\nfunc TestB(t *testing.T) {}\nfunc FuzzC(f *testing.F) { f.Skip() }\n")
		got, err := discover(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		want := []target{{dir, "example.com/m", "FuzzA"}, {dir, "example.com/m", "FuzzC"}}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{})); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRun(t *testing.T) {
	t.Run("When no target has the name, it should return an error", func(t *testing.T) {
		if err := run(t.Context(), []string{module(t, "")}, nil, "FuzzNone"); err == nil {
			t.Error("nothing was run, and nothing said")
		}
	})
}

func TestFuzz(t *testing.T) {
	t.Run("When a target crashes, it should return an error after running with its fuzz time", func(t *testing.T) {
		dir := t.TempDir()
		// A real test binary takes minutes to build: the complete standard library is compiled again.
		program := "#!/bin/sh\necho \"$*\"\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		var out strings.Builder
		if err := (target{dir, "example.com/m", "FuzzA"}).fuzz(t.Context(), goTest("/fuzz", time.Minute, 1, true), &out); err == nil {
			t.Error("the crash was not noticed")
		}
		want := "=== example.com/m.FuzzA\ntest -run ^$ -exec /fuzz -interrupt-after 1m0s -timeout 0 -parallel 1 -json -fuzz ^FuzzA$ example.com/m\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		after        time.Duration
		want         int
	}{
		{"When the time is over, it should interrupt the program and return its exit status", "trap 'exit 7' INT; : > $1; while :; do sleep 0.05; done", 300 * time.Millisecond, 7},
		{"When the program exits with 0 after the interrupt, it should return 0", "trap 'exit 0' INT; : > $1; while :; do sleep 0.05; done", 300 * time.Millisecond, 0},
		{"When the program exits before the time is over, it should return its exit status", "exit 3", time.Minute, 3},
		{"When a signal kills the program, it should return 1", "kill -9 $$", time.Minute, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := filepath.Join(t.TempDir(), "began")
			for after := tt.after; ; after *= 2 {
				got := interrupted(t.Context(), after, []string{"sh", "-c", tt.script, "sh", began})
				if _, err := os.Stat(began); err != nil && after < time.Minute {
					continue // The interrupt arrived before the program could set its exit status for it.
				}
				if got != tt.want {
					t.Errorf("exit status %d, want %d", got, tt.want)
				}
				return
			}
		})
	}
	t.Run("When the program does not exist, it should return 1", func(t *testing.T) {
		if got := interrupted(t.Context(), time.Minute, []string{filepath.Join(t.TempDir(), "none")}); got != 1 {
			t.Errorf("exit status %d, want 1", got)
		}
	})
}
