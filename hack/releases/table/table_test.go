// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/hack/releases/table"
)

const valid = `releases:
- version: 0.1.0
  commit: "0c91b51ff98c5134ab622ead278d1cf2ace0016d"
  day: "2026-11-26"
  kubernetes: [1.35.0, 1.36.3]
- version: 0.2.0
  commit: "1111111111111111111111111111111111111111"
  day: "2027-01-10"
  kubernetes: [1.36.3]
`

func read(t *testing.T, content string) (table.Table, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "releases.yaml")
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return table.Read(path)
}

func TestRead(t *testing.T) {
	t.Run("reads releases from oldest to newest", func(t *testing.T) {
		g := NewWithT(t)
		got, err := read(t, valid)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Last().Version).To(Equal("0.2.0"))
		first, err := got.Find("0.1.0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(first).To(Equal(table.Release{
			Version: "0.1.0", Commit: "0c91b51ff98c5134ab622ead278d1cf2ace0016d", Day: "2026-11-26",
			Kubernetes: []string{"1.35.0", "1.36.3"},
		}))
	})
	t.Run("lists the known versions when the requested one is not in the table", func(t *testing.T) {
		g := NewWithT(t)
		got, err := read(t, valid)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = got.Find("0.9.0")
		g.Expect(err).To(MatchError(ContainSubstring("choose one of 0.1.0, 0.2.0")))
	})
	t.Run("reads the table of this repository", func(t *testing.T) {
		_, err := table.Read(filepath.Join("..", "..", "..", table.Path))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	for name, mutation := range map[string]struct{ from, to, message string }{
		"a version with a leading v":          {"version: 0.1.0", "version: v0.1.0", "MAJOR.MINOR.PATCH"},
		"a version without a patch":           {"version: 0.1.0", `version: "0.1"`, "MAJOR.MINOR.PATCH"},
		"an abbreviated commit":               {"0c91b51ff98c5134ab622ead278d1cf2ace0016d", "0c91b51f", "not a full hash"},
		"a date in another format":            {"2026-11-26", "26 November 2026", "YYYY-MM-DD"},
		"no Kubernetes version":               {"[1.35.0, 1.36.3]", "[]", "names no Kubernetes version"},
		"an incomplete Kubernetes version":    {"[1.35.0, 1.36.3]", `["1.36"]`, "Kubernetes version"},
		"Kubernetes versions from new to old": {"[1.35.0, 1.36.3]", "[1.36.3, 1.35.0]", "from old to new"},
		"releases from new to old":            {"version: 0.2.0", "version: 0.0.9", "from old to new"},
		"a duplicate release":                 {"version: 0.2.0", "version: 0.1.0", "from old to new"},
		"an unknown field":                    {"day:", "date:", "unknown field"},
		"no release":                          {valid, "releases: []", "no releases"},
	} {
		t.Run("rejects "+name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(valid).To(ContainSubstring(mutation.from))
			_, err := read(t, strings.Replace(valid, mutation.from, mutation.to, 1))
			g.Expect(err).To(MatchError(ContainSubstring(mutation.message)))
		})
	}
}
