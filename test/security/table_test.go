// SPDX-License-Identifier: Apache-2.0

package security

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
)

const repository = "../.."

var (
	// function matches a test, a fuzz target or a benchmark.
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	// mention matches the name of one in backticks.
	mention = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
)

// testsIn returns the tests of all packages below a folder.
func testsIn(t *testing.T, folder string) sets.Set[string] {
	t.Helper()
	found := sets.New[string]()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != repository {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range function.FindAllSubmatch(source, -1) {
			found.Insert(string(match[1]))
		}
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

// TestPageOfSecurity checks docs/security.md against the tests. Each test that the page names exists. The page names
// each test of this package. Each row of the table of attacks names a test or says what is left.
func TestPageOfSecurity(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(repository + "/docs/security.md")
	g.Expect(err).NotTo(HaveOccurred())
	named := sets.New[string]()
	for _, match := range mention.FindAllSubmatch(page, -1) {
		named.Insert(string(match[1]))
	}
	g.Expect(sets.List(named.Difference(testsIn(t, repository)))).To(BeEmpty(), "the page names tests that do not exist")
	own := testsIn(t, ".").Delete("TestMain", "TestPageOfSecurity")
	g.Expect(sets.List(own.Difference(named))).To(BeEmpty(), "add these tests to the table of attacks in docs/security.md")
	_, table, found := strings.Cut(string(page), "\n## Attacks\n")
	g.Expect(found).To(BeTrue(), "the page has no table of attacks")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attack") {
			continue
		}
		rows++
		g.Expect(mention.MatchString(line) || strings.Contains(line, "left:")).To(BeTrue(), line)
	}
	g.Expect(rows).To(BeNumerically(">", 20))
}
