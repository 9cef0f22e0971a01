// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.mod")
	for name, tt := range map[string]struct{ content, says string }{
		"accepts modules without known holes": {"module m\ntoolchain go1.26.10\nrequire golang.org/x/net v0.61.0\n", ""},
		"refuses a module": {
			"module m\ngo 1.26.10\nrequire golang.org/x/net v0.60.0 // indirect\n", "golang.org/x/net v0.60.0",
		},
		"refuses a toolchain":                 {"module m\ngo 1.26.0\ntoolchain go1.26.8\n", "go 1.26.8"},
		"refuses a file that is not a go.mod": {"{", "go.mod"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := check([]string{file})
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}
