// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"io/fs"
	"testing"

	. "github.com/onsi/gomega"
)

const mebibyte = 1 << 20

func TestLoad(t *testing.T) {
	for _, folder := range Folders {
		t.Run("When folder "+folder+" is loaded, it should have CRDs with one storage version each", func(t *testing.T) {
			g := NewWithT(t)
			crds, err := Load(folder)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(crds).NotTo(BeEmpty())
			for _, crd := range crds {
				g.Expect(crd.Name).To(Equal(crd.Spec.Names.Plural + "." + crd.Spec.Group))
				g.Expect(crd.Spec.Conversion).To(BeNil(), "who converts %s is the installer's to say", crd.Name)
				stored := 0
				for _, version := range crd.Spec.Versions {
					if version.Storage {
						stored++
					}
				}
				g.Expect(stored).To(Equal(1), crd.Name)
			}
		})
	}
	t.Run("When CRDs of Cluster API are loaded, they should store the version of our managers", func(t *testing.T) {
		g := NewWithT(t)
		crds, err := Load(ClusterAPI)
		g.Expect(err).NotTo(HaveOccurred())
		for i, crd := range crds {
			g.Expect(Names(ClusterAPI)[i]).To(Equal(crd.Name))
			served := map[string]bool{}
			for _, version := range crd.Spec.Versions {
				g.Expect(version.Served).To(BeTrue())
				served[version.Name] = version.Storage
			}
			g.Expect(served).To(HaveLen(2), crd.Name)
			g.Expect(served).To(HaveKeyWithValue("v1beta2", true), crd.Name)
		}
	})
	t.Run("When the folder does not exist, it should return an error that names it", func(t *testing.T) {
		_, err := Load("nowhere")
		g := NewWithT(t)
		g.Expect(err).To(MatchError(ContainSubstring(`"nowhere"`)))
		g.Expect(Names("nowhere")).To(BeEmpty())
	})
}

func TestSizes(t *testing.T) {
	t.Run("When CRDs are stored, they should fit into an etcd request with a margin", func(t *testing.T) {
		g := NewWithT(t)
		err := fs.WalkDir(FS, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			g.Expect(info.Size()).To(BeNumerically("<", mebibyte), path)
			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	})
}

func TestContractLabels(t *testing.T) {
	cases := []struct {
		folder, crd, label, version string
	}{
		{Infrastructure, "maasmachines.infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta2", "v1beta1"},
		{Infrastructure, "maasmachinetemplates.infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta2", "v1beta1"},
		{Infrastructure, "maasclusters.infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta2", "v1beta1"},
		{AWS, "awsclusters.infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta1", "v1beta2"},
		{AWS, "awsmachines.infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta1", "v1beta2"},
		{AWS, "awsmachinetemplates.infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta1", "v1beta2"},
		{HyperShift, "hostedcontrolplanes.hypershift.openshift.io", "cluster.x-k8s.io/v1beta1", "v1beta1"},
		{ClusterAPI, "clusters.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta2", "v1beta2"},
	}
	for _, test := range cases {
		t.Run("When Cluster API looks for the contract of "+test.crd+", it should find the label", func(t *testing.T) {
			g := NewWithT(t)
			crds, err := Load(test.folder)
			g.Expect(err).NotTo(HaveOccurred())
			for _, crd := range crds {
				if crd.Name == test.crd {
					g.Expect(crd.Labels).To(HaveKeyWithValue(test.label, test.version))
					return
				}
			}
			t.Fatalf("%s is not in %s", test.crd, test.folder)
		})
	}
}
