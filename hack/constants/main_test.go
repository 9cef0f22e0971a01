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
		{"a constant of its own repeats one", "cmd/a.go", `const a = "example.io/restart"`, "use v1beta1.RestartAnnotation"},
		{"a raw literal repeats one", "cmd/a.go", "var a = `example.io/restart`", "use v1beta1.RestartAnnotation"},
		{"a literal repeats a condition", "cmd/a.go", `var a = "ReleaseValid"`, "use v1beta1.ReleaseValid"},
		{"a literal repeats a key of a Secret", "cmd/a.go", `var a = "old-key.pub"`, "use v1beta1.SigningSecretKey"},
		{"a condition is a word of many meanings", "cmd/a.go", `var a = "Ready"`, ""},
		{"a key is a word of many meanings", "cmd/a.go", `var a = "token"`, ""},
		{"a reason is repeated", "cmd/a.go", `var a = "WaitingForRest"`, ""},
		{"a name is not exported", "cmd/a.go", `var a = "example.io/hidden"`, ""},
		{"another name is longer", "cmd/a.go", `var a = "example.io/restart-date"`, ""},
		{"it is an import", "cmd/a.go", `import _ "example.io/restart"`, ""},
		{"it is a test", "cmd/a_test.go", `var a = "example.io/restart"`, ""},
		{"it is api", "api/a.go", `var a = "example.io/restart"`, ""},
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
	t.Run("When it is told of no constants, it should not pass", func(t *testing.T) {
		NewWithT(t).Expect(check(t.TempDir(), strings.NewReader(""))).To(MatchError(ContainSubstring("no constant of api/")))
	})
}
