// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestChanged(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(file, content string) {
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(content), 0o644)).To(Succeed())
	}
	git := func(args ...string) {
		args = append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)
		out, err := exec.Command("git", args...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	write("go.mod", "module "+module+"\n\ngo 1.26\n")
	for _, folder := range []string{"a", "b", "c", "test/e2e"} {
		write(folder+"/x.go", "package x\n")
		write(folder+"/x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n")
	}
	write("b/testdata/golden/x.yaml", "a: 1\n")
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	t.Setenv("REPEAT_BASE", "HEAD")

	_, err := changed()
	g.Expect(err).To(MatchError(ContainSubstring("name an older commit with REPEAT_BASE")))

	write("a/x.go", "package x\n\nvar X = 1\n")
	write("b/testdata/golden/x.yaml", "a: 2\n")
	write("test/e2e/x.go", "package x\n\nvar X = 1\n")
	g.Expect(changed()).To(ConsistOf(module+"/a", module+"/b"), "packages that need the environment are left out")

	t.Setenv("REPEAT_BASE", "no-such-commit")
	_, err = changed()
	g.Expect(err).To(MatchError(ContainSubstring("name a commit with REPEAT_BASE")))
}
