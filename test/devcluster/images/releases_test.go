// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// kubelet writes a fake kubelet that runs the shell script.
func kubelet(g Gomega, bin, folder, script string) {
	g.Expect(os.MkdirAll(filepath.Join(bin, folder), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(bin, folder, "kubelet"), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
}

func TestReleases(t *testing.T) {
	g, bin := NewWithT(t), t.TempDir()
	kubelet(g, bin, "kube", `test "$*" = --version && echo 'Kubernetes v1.36.4'`)
	g.Expect(Releases(t.Context(), bin)).To(HaveLen(1), "a demo needs no earlier minor")
	kubelet(g, bin, "kube-previous", "echo 'Kubernetes v1.35.9'")
	kubelet(g, bin, "kube-patch", "echo 'Kubernetes v1.35.10'")
	releases, err := Releases(t.Context(), bin)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(releases).To(HaveExactElements(
		And(HaveField("Version", "1.36.4"), HaveField("Suffix", ""), HaveField("Others", "")),
		And(HaveField("Version", "1.35.9"), HaveField("Others", ""))))
	patch, err := Patch(t.Context(), bin)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patch.Version).To(Equal("1.35.10"))
	g.Expect(patch.Others).To(Equal(releases[1].Suffix), "all but the kubelet is that of the release before it")
	g.Expect(patch.Suffix).NotTo(BeElementOf(releases[0].Suffix, releases[1].Suffix), "no image of another release is replaced")
}

func TestKubeletVersion(t *testing.T) {
	for name, tc := range map[string]struct{ script, wrong string }{
		"fails":               {"exit 1", "exit status 1"},
		"says something else": {"echo v1.36.4", `says its version is "v1.36.4"`},
		"says nothing":        {"true", `says its version is ""`},
	} {
		t.Run("When a kubelet "+name+", the error should name it and say how to build it", func(t *testing.T) {
			g, bin := NewWithT(t), t.TempDir()
			kubelet(g, bin, "kube", tc.script)
			_, err := KubeletVersion(t.Context(), filepath.Join(bin, "kube", "kubelet"))
			g.Expect(err).To(MatchError(And(ContainSubstring(tc.wrong), ContainSubstring("kube/kubelet"), ContainSubstring("make images"))))
		})
	}
}
