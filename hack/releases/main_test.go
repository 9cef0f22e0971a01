// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/hack/releases/table"
)

// makefile is the Makefile of a released version: it counts its builds.
const makefile = `build:
	mkdir -p bin/node-agent
	echo "$(VERSION) $$GOTOOLCHAIN" > bin/hypershift
	touch bin/node-agent/amd64
	echo built >> "$(LOG)"
`

// fixture is a repository with one released commit, and a later one.
type fixture struct {
	g       *WithT
	root    string
	cache   string
	release table.Release
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	g := NewWithT(t)
	f := fixture{g: g, root: t.TempDir(), cache: t.TempDir()}
	t.Setenv("LOG", filepath.Join(f.cache, "log"))
	t.Setenv("MAKEFLAGS", "VERSION=of-the-caller")
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
		"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	} {
		t.Setenv(name, value)
	}
	f.git("init", "-q")
	f.write("Makefile", makefile)
	f.write("CHANGELOG.md", "# Changelog\n\n## [0.1.0] - 2026-11-26\n\n### Upgrading\n\n- Nothing.\n")
	f.git("add", ".")
	f.git("commit", "-qm", "released")
	commit := strings.TrimSpace(f.git("rev-parse", "HEAD"))
	f.write("Makefile", "build:\n\tfalse\n")
	f.git("commit", "-qam", "after")
	f.release = table.Release{Version: "0.1.0", Commit: commit, Day: "2026-11-26", Kubernetes: []string{"1.36.3"}}
	return f
}

func (f fixture) git(arguments ...string) string {
	out, err := exec.Command("git", append([]string{"-C", f.root}, arguments...)...).CombinedOutput()
	f.g.Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

func (f fixture) write(name, content string) {
	f.g.Expect(os.WriteFile(filepath.Join(f.root, name), []byte(content), 0o600)).To(Succeed())
}

// shallow returns the fixture with a clone of its last commit only.
func (f fixture) shallow(t *testing.T) fixture {
	clone := filepath.Join(t.TempDir(), "clone")
	f.git("clone", "-q", "--depth", "1", "file://"+f.root, clone)
	f.root = clone
	return f
}

func TestPrograms(t *testing.T) {
	t.Run("builds the commit's own programs once and leaves no worktree", func(t *testing.T) {
		f := newFixture(t)
		for range 2 {
			folder, err := programs(t.Context(), f.root, f.cache, f.release)
			f.g.Expect(err).NotTo(HaveOccurred())
			f.g.Expect(folder).To(Equal(filepath.Join(f.cache, "releases", "0.1.0", "bin")))
			content, err := os.ReadFile(filepath.Join(folder, "hypershift"))
			f.g.Expect(err).NotTo(HaveOccurred())
			f.g.Expect(string(content)).To(HavePrefix("v0.1.0 go1."))
			f.g.Expect(filepath.Join(folder, "node-agent", "amd64")).To(BeAnExistingFile())
		}
		f.g.Expect(os.ReadFile(os.Getenv("LOG"))).To(Equal([]byte("built\n")))
		f.g.Expect(strings.Count(f.git("worktree", "list", "--porcelain"), "worktree ")).To(Equal(1))
		entries, err := os.ReadDir(filepath.Join(f.cache, "releases", "0.1.0"))
		f.g.Expect(err).NotTo(HaveOccurred())
		f.g.Expect(entries).To(HaveLen(1))
	})
	t.Run("keeps no files of a failed build", func(t *testing.T) {
		f := newFixture(t)
		f.release.Commit = strings.TrimSpace(f.git("rev-parse", "HEAD"))
		_, err := programs(t.Context(), f.root, f.cache, f.release)
		f.g.Expect(err).To(MatchError(ContainSubstring("building the programs of release 0.1.0")))
		f.g.Expect(filepath.Glob(filepath.Join(f.cache, "releases", "0.1.0", "*"))).To(BeEmpty())
		f.g.Expect(strings.Count(f.git("worktree", "list", "--porcelain"), "worktree ")).To(Equal(1))
	})
	t.Run("tells the user to run git fetch --unshallow when a shallow clone lacks the commit", func(t *testing.T) {
		f := newFixture(t).shallow(t)
		_, err := programs(t.Context(), f.root, f.cache, f.release)
		f.g.Expect(err).To(MatchError("this clone lacks commit " + f.release.Commit[:8] +
			" of release 0.1.0; run `git fetch --unshallow`"))
	})
}

func TestVerify(t *testing.T) {
	verifyOf := func(t *testing.T, f fixture) error {
		return verify(t.Context(), f.root, table.Table{Releases: []table.Release{f.release}})
	}
	t.Run("accepts a release that is in the changelog and in the repository", func(t *testing.T) {
		f := newFixture(t)
		f.g.Expect(verifyOf(t, f)).To(Succeed())
	})
	t.Run("rejects a date that is not in the changelog", func(t *testing.T) {
		f := newFixture(t)
		f.release.Day = "2026-11-27"
		f.g.Expect(verifyOf(t, f)).To(MatchError(ContainSubstring("CHANGELOG.md has no heading")))
	})
	t.Run("rejects a release whose part of the changelog does not say how to upgrade", func(t *testing.T) {
		f := newFixture(t)
		f.write("CHANGELOG.md", "# Changelog\n\n## [0.1.0] - 2026-11-26\n\n## [0.0.9] - 2026-11-25\n\n### Upgrading\n")
		f.g.Expect(verifyOf(t, f)).To(MatchError(ContainSubstring(`has no heading "### Upgrading" below "## [0.1.0]`)))
	})
	t.Run("rejects a commit that is not in the repository", func(t *testing.T) {
		f := newFixture(t)
		f.release.Commit = strings.Repeat("1", 40)
		f.g.Expect(verifyOf(t, f)).To(MatchError(ContainSubstring("lacks commit 11111111")))
	})
	t.Run("accepts a shallow clone that lacks the commit", func(t *testing.T) {
		f := newFixture(t).shallow(t)
		f.g.Expect(verifyOf(t, f)).To(Succeed())
	})
}

func TestLinkLast(t *testing.T) {
	f := newFixture(t)
	folder := filepath.Join(t.TempDir(), "released")
	f.g.Expect(os.MkdirAll(filepath.Join(folder, "0.0.9"), 0o755)).To(Succeed())
	releases := table.Table{Releases: []table.Release{{Version: "0.0.9", Commit: "none"}, f.release}}
	for range 2 {
		f.g.Expect(linkLast(t.Context(), f.root, f.cache, releases, folder)).To(Succeed())
		f.g.Expect(filepath.Glob(filepath.Join(folder, "*", "hypershift"))).To(ConsistOf(
			filepath.Join(folder, "0.1.0", "hypershift")), "only the last release is linked")
	}
	t.Run("creates no folder in a clone that lacks the commit", func(t *testing.T) {
		shallow := f.shallow(t)
		f.g.Expect(linkLast(t.Context(), shallow.root, t.TempDir(), releases, folder)).To(Succeed())
		f.g.Expect(filepath.Glob(filepath.Join(folder, "*"))).To(BeEmpty())
	})
}
