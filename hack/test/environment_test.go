// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTakeEnvironment(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, as the embedded environment does")
	}
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	write := func(script string) {
		g.Expect(os.MkdirAll("bin", 0o755)).To(Succeed())
		g.Expect(os.WriteFile("bin/devcluster", []byte("#!/bin/sh\n"+script), 0o755)).To(Succeed())
	}
	dir := filepath.Join(t.TempDir(), filepath.Base(t.TempDir())+t.Name())
	t.Cleanup(func() { _ = os.Remove(filepath.Join(lockFolder, filepath.Base(dir)+".lock")) })

	write(`echo "$@" > seen`)
	release, err := takeEnvironment(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile("seen")).To(BeEquivalentTo("down --dir " + dir + "\n"))

	_, err = takeEnvironment(dir)
	g.Expect(err).To(MatchError(ContainSubstring("wait until it ends")))
	release()

	write("echo the demo runs >&2; exit 1")
	_, err = takeEnvironment(dir)
	g.Expect(err).To(MatchError(ContainSubstring("the demo runs")))

	write("exit 0")
	release, err = takeEnvironment(dir)
	g.Expect(err).NotTo(HaveOccurred(), "a failure keeps no lock")
	release()
}
