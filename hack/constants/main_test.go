// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const api = `package v1beta1

type ConditionType string

const (
	RestartAnnotation = "example.io/restart"
	SigningSecretKey  = "old-key.pub"
	PlainSecretKey    = "token"
	hidden            = "example.io/hidden"
)

const (
	ReleaseValid    ConditionType = "ReleaseValid"
	Ready           ConditionType = "Ready"
)

const ShortReason = "WaitingForRest"
`

func TestCheck(t *testing.T) {
	for _, tc := range []struct{ name, file, source, want string }{
		{"a literal repeats an annotation", "cmd/a.go", `var a = "example.io/restart"`, `cmd/a.go:2:9: use v1beta1.RestartAnnotation instead of "example.io/restart"`},
		{"a local constant repeats an annotation", "cmd/a.go", `const a = "example.io/restart"`, "use v1beta1.RestartAnnotation"},
		{"a raw string literal repeats an annotation", "cmd/a.go", "var a = `example.io/restart`", "use v1beta1.RestartAnnotation"},
		{"a literal repeats a condition type", "cmd/a.go", `var a = "ReleaseValid"`, "use v1beta1.ReleaseValid"},
		{"a literal repeats a Secret key", "cmd/a.go", `var a = "old-key.pub"`, "use v1beta1.SigningSecretKey"},
		{"a condition type is a common word", "cmd/a.go", `var a = "Ready"`, ""},
		{"a Secret key is a common word", "cmd/a.go", `var a = "token"`, ""},
		{"a literal repeats a condition reason", "cmd/a.go", `var a = "WaitingForRest"`, ""},
		{"a constant is not exported", "cmd/a.go", `var a = "example.io/hidden"`, ""},
		{"another name is longer", "cmd/a.go", `var a = "example.io/restart-date"`, ""},
		{"the literal is an import path", "cmd/a.go", `import _ "example.io/restart"`, ""},
		{"the file is a test", "cmd/a_test.go", `var a = "example.io/restart"`, ""},
		{"the file is in api", "api/a.go", `var a = "example.io/restart"`, ""},
	} {
		t.Run("When "+tc.name+", it should "+map[bool]string{true: "pass", false: "name file, line and constant"}[tc.want == ""], func(t *testing.T) {
			g := NewWithT(t)
			root := t.TempDir()
			for name, source := range map[string]string{"api/types.go": api, tc.file: "package a\n" + tc.source + "\n"} {
				g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o750)).To(Succeed())
				g.Expect(os.WriteFile(filepath.Join(root, name), []byte(source), 0o600)).To(Succeed())
			}
			err := check(root, strings.NewReader("api/types.go\x00"+tc.file+"\x00"))
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When no constants are found, it should return an error", func(t *testing.T) {
		NewWithT(t).Expect(check(t.TempDir(), strings.NewReader(""))).To(MatchError(ContainSubstring("no constant of api/")))
	})
}
