// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/crds"
)

func TestStart(t *testing.T) {
	t.Run("When every folder is requested, it should serve every CRD", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
		config := Start(t, crds.Folders...)
		c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
		g.Expect(err).NotTo(HaveOccurred())

		var installed apiextensionsv1.CustomResourceDefinitionList
		g.Expect(c.List(t.Context(), &installed)).To(Succeed())
		g.Expect(installed.Items).NotTo(BeEmpty())
		for _, crd := range installed.Items {
			for _, condition := range crd.Status.Conditions {
				if condition.Type == apiextensionsv1.NonStructuralSchema {
					t.Errorf("%s: %s", crd.Name, condition.Message)
				}
			}
		}
	})
}

func TestFindBinaries(t *testing.T) {
	t.Run("When bin/kube is in a parent of the working directory, it should be found", func(t *testing.T) {
		g := NewWithT(t)
		root := t.TempDir()
		kube := filepath.Join(root, "bin", "kube")
		below := filepath.Join(root, "a", "b")
		g.Expect(os.MkdirAll(kube, 0o755)).To(Succeed())
		g.Expect(os.MkdirAll(below, 0o755)).To(Succeed())
		for _, program := range []string{"etcd", "kube-apiserver"} {
			g.Expect(os.WriteFile(filepath.Join(kube, program), nil, 0o755)).To(Succeed())
		}
		t.Setenv(assets, "")
		t.Chdir(below)
		g.Expect(findBinaries()).To(Equal(kube))
	})
	t.Run("When there are no binaries, the error should say how to get them", func(t *testing.T) {
		t.Setenv(assets, "")
		t.Chdir(t.TempDir())
		_, err := findBinaries()
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("make kube-binaries")))
	})
}
