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

// clusterClasses have recursive schemas of variables, which the schema of a CRD cannot express. No program of this
// product reads them, and tenants have no right to write them.
const clusterClasses = "clusterclasses.cluster.x-k8s.io"

// TestDecodable tries, for each field of each kind, values that the API server may accept. If the API server accepts a
// value that the Go type cannot decode, each program that lists the kind stops.
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

// TestFindsUndecodable runs the search of TestDecodable on a part of the NodePool CRD of version 0.1.0, which has such
// values.
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
