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
