// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/manifests"
)

func TestWrite(t *testing.T) {
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "new", "dist")
	g.Expect(write(manifests.Release{Image: "i", Version: "v0.9.1"}, folder)).To(Succeed())
	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	g.Expect(names).To(Equal([]string{"cluster-template.yaml", "infrastructure-components.yaml", "metadata.yaml"}), "what clusterctl looks for")
	g.Expect(write(manifests.Release{Image: "i"}, folder)).NotTo(Succeed())
}

// TestWriteAgain checks that a new release replaces existing files.
func TestWriteAgain(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(write(manifests.Release{Image: "old", Version: "v0.9.1"}, folder)).To(Succeed())
	g.Expect(write(manifests.Release{Image: "new/image:2", Version: "v0.9.2"}, folder)).To(Succeed())
	text, err := os.ReadFile(filepath.Join(folder, "infrastructure-components.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(And(ContainSubstring("new/image:2"), Not(ContainSubstring("image: old"))))
}

// TestNothingIsWrittenOfABadRelease checks that an invalid version writes no file: clusterctl would use an incomplete
// release.
func TestNothingIsWrittenOfABadRelease(t *testing.T) {
	g := NewWithT(t)
	folder := filepath.Join(t.TempDir(), "dist")
	g.Expect(write(manifests.Release{Image: "i", Version: "latest"}, folder)).To(MatchError(ContainSubstring("latest")))
	g.Expect(folder).NotTo(BeAnExistingFile())
}

// TestFolderThatCannotBe checks that the error names the file and the folder.
func TestFolderThatCannotBe(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	g.Expect(write(manifests.Release{Image: "i", Version: "v0.9.1"}, filepath.Join(file, "dist"))).To(MatchError(ContainSubstring("making folder " + file)))
	folder := t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(folder, "metadata.yaml"), 0o700)).To(Succeed())
	g.Expect(write(manifests.Release{Image: "i", Version: "v0.9.1"}, folder)).To(MatchError(ContainSubstring("writing metadata.yaml")))
}
