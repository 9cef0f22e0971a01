// SPDX-License-Identifier: Apache-2.0

// Package hooks_test runs the hooks that `make hooks` installs.
package hooks_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCommitMsg(t *testing.T) {
	for name, c := range map[string]struct{ message, refusal string }{
		"accepts an area and a summary":        {message: "nodepool: wait for the API server\n\nWhy it waits.\n"},
		"accepts several areas":                {message: "cmd/install, docs: add a flag\n"},
		"accepts 72 columns of any alphabet":   {message: "pki: " + strings.Repeat("ä", 67) + "\n"},
		"accepts what git writes":              {message: "Merge branch 'main' of " + strings.Repeat("x", 72) + "\n"},
		"skips comments before the subject":    {message: "# Please enter the message.\n\npki: renew\n"},
		"ignores the diff below the scissors":  {message: "pki: renew\n# --- >8 ---\ndiff\n"},
		"refuses 73 columns":                   {message: "pki: " + strings.Repeat("x", 68) + "\n", refusal: "73 columns"},
		"refuses a subject that names no area": {message: "Fix the test\n", refusal: `"Fix the test" names no area`},
		"refuses an area without a summary":    {message: "pki:\n", refusal: "names no area"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "COMMIT_EDITMSG")
			g.Expect(os.WriteFile(file, []byte(c.message), 0o600)).To(Succeed())
			out, err := exec.CommandContext(t.Context(), "./commit-msg", file).CombinedOutput()
			if c.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred(), string(out))
				return
			}
			g.Expect(err).To(HaveOccurred())
			g.Expect(string(out)).To(ContainSubstring(c.refusal))
		})
	}
}
