// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	// phony finds the declarations of targets; generated ones name a variable.
	phony = regexp.MustCompile(`(?m)^\.PHONY: (.*)$`)
	// inlineTarget finds the first target of a call of make between backticks.
	inlineTarget = regexp.MustCompile("`(?:sudo )?make ([a-z][-a-z0-9]*)")
	// blockTarget finds it at the beginning of a line of a block.
	blockTarget = regexp.MustCompile(`(?m)^(?:\$ )?(?:sudo )?make ([a-z][-a-z0-9]*)`)
)

// TestMakeTargets checks that the targets that pages call exist.
func TestMakeTargets(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "hack", "make", "*.mk"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	targets := map[string]bool{}
	for _, file := range append(files, filepath.Join(repository, "Makefile")) {
		text, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, match := range phony.FindAllStringSubmatch(string(text), -1) {
			for _, target := range strings.Fields(match[1]) {
				targets[target] = true
			}
		}
	}
	for _, p := range readPages(t) {
		t.Run(p.path, func(t *testing.T) {
			calls := inlineTarget.FindAllStringSubmatch(p.prose, -1)
			for _, b := range p.blocksOf("console", "shell", "sh", "bash", "") {
				calls = append(calls, blockTarget.FindAllStringSubmatch(b.text, -1)...)
			}
			for _, match := range calls {
				if !targets[match[1]] {
					t.Errorf("make %s: there is no such target", match[1])
				}
			}
		})
	}
}
