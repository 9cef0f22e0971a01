// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/crds"
)

// clusterClasses have schemas of variables that contain themselves, which no schema of a CRD can describe. No program
// of ours reads them, and tenants have no right to write them.
const clusterClasses = "clusterclasses.cluster.x-k8s.io"

// TestDecodable tries, for each field of each kind, values that the API server may accept. One that it accepts and that
// the Go type cannot decode would stop each program that lists the kind.
func TestDecodable(t *testing.T) {
	known := verdicts{}
	for _, folder := range crds.Folders {
		scheme, err := Scheme(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		loaded, err := crds.Load(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, crd := range loaded {
			t.Run(folder+"/the types decode what the API server accepts of "+crd.Name, func(t *testing.T) {
				for _, problem := range known.undecodable(t, crd, scheme) {
					if !strings.Contains(problem, ".openAPIV3Schema.") || crd.Name != clusterClasses {
						t.Error(problem)
					}
				}
			})
		}
	}
}

// TestFindsUndecodable holds the search above against a part of the NodePool of 0.1.0.
func TestFindsUndecodable(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/nodepools-0.1.0.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(data, crd)).To(Succeed())
	scheme, err := Scheme(crds.HyperShift)
	g.Expect(err).NotTo(HaveOccurred())
	var paths []string
	for _, problem := range (verdicts{}).undecodable(t, crd, scheme) {
		path, _, _ := strings.Cut(problem, " ")
		paths = append(paths, path)
	}
	g.Expect(paths).To(ConsistOf(
		"v1beta1.spec.nodeDrainTimeout", "v1beta1.spec.management.replace.rollingUpdate.maxSurge",
		"v1beta1.spec.platform.kubevirt.compute.memory", "v1beta1.status.conditions[].lastTransitionTime",
	))
}
