// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// inTree creates a tree with some files and makes it the working directory.
func inTree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriteAndVerify(t *testing.T) {
	made := []file{{path: "support/crds/hypershift/a.yaml", data: []byte("new")}, {path: "docs/b.md", data: []byte("page")}}
	t.Run("When files are written, they should be up to date and files no longer generated should be deleted", func(t *testing.T) {
		g := NewWithT(t)
		inTree(t, map[string]string{"support/crds/hypershift/a.yaml": "old", "support/crds/hypershift/gone.yaml": "old", "support/crds/crds.go": "code"})
		stale, err := staleFiles(made)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stale).To(ConsistOf("support/crds/hypershift/gone.yaml"))
		g.Expect(verify(made, stale)).To(MatchError(And(
			ContainSubstring("a.yaml is stale"), ContainSubstring("docs/b.md is stale"), ContainSubstring("gone.yaml is no longer generated"),
		)))

		g.Expect(write(made, stale)).To(Succeed())
		g.Expect(verify(made, nil)).To(Succeed())
		g.Expect("support/crds/hypershift/gone.yaml").NotTo(BeAnExistingFile())
		g.Expect("support/crds/crds.go").To(BeAnExistingFile())
	})
}

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  names: {kind: Widget}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {x-kubernetes-int-or-string: true}
              ports: {type: array, maxItems: 3, items: {type: integer, format: int32, minimum: 1}}
              labels: {type: object, additionalProperties: {type: string, default: x}}
`

func TestVerifyFields(t *testing.T) {
	path := filepath.Join(crdFolder, "hypershift", "widgets.yaml")
	t.Run("When every published field exists with its type, verifyFields should return no error", func(t *testing.T) {
		inTree(t, map[string]string{path: widgetCRD, fieldListPath: fieldListHeader +
			"widgets.example.com v1 spec.size int-or-string\nwidgets.example.com v1 spec.ports[] integer/int32\nwidgets.example.com v1 spec.labels{} string\n"})
		NewWithT(t).Expect(verifyFields()).To(Succeed())
	})
	t.Run("When a field is removed or changes its type, it should name the field", func(t *testing.T) {
		inTree(t, map[string]string{path: widgetCRD, fieldListPath: fieldListHeader +
			"widgets.example.com v1 spec.ports[] string\nwidgets.example.com v1 spec.weight integer\n"})
		NewWithT(t).Expect(verifyFields()).To(MatchError(And(
			ContainSubstring("spec.ports[] was string and is integer/int32"), ContainSubstring("spec.weight is lost"),
		)))
	})
	for _, kind := range []string{"integer", "integer/int32", "string"} {
		t.Run("When a field accepts more than before, it should return no error: "+kind, func(t *testing.T) {
			inTree(t, map[string]string{path: widgetCRD, fieldListPath: fieldListHeader + "widgets.example.com v1 spec.size " + kind + "\n"})
			NewWithT(t).Expect(verifyFields()).To(Succeed())
		})
	}
	t.Run("When a field accepts less than before, it should return an error", func(t *testing.T) {
		inTree(t, map[string]string{path: widgetCRD, fieldListPath: fieldListHeader + "widgets.example.com v1 spec.labels{} int-or-string\n"})
		NewWithT(t).Expect(verifyFields()).To(MatchError(ContainSubstring("spec.labels{} was int-or-string and is string")))
	})
	t.Run("When the field list is missing, it should return an error", func(t *testing.T) {
		inTree(t, map[string]string{path: widgetCRD})
		NewWithT(t).Expect(verifyFields()).NotTo(Succeed())
	})
}

func TestFieldList(t *testing.T) {
	t.Run("When a published field is removed from the CRDs, the list should keep it", func(t *testing.T) {
		g := NewWithT(t)
		inTree(t, map[string]string{fieldListPath: fieldListHeader + "widgets.example.com v1 spec.weight integer\n"})
		crd := file{path: filepath.Join(crdFolder, "hypershift", "widgets.yaml"), data: []byte(widgetCRD)}
		theirs := file{path: filepath.Join(crdFolder, "clusterapi", "widgets.yaml"), data: []byte("not: read")}
		files, err := fieldList(generator{made: []file{crd, theirs}})
		g.Expect(err).NotTo(HaveOccurred())
		text := string(files[0].data)
		g.Expect(text).To(HavePrefix(fieldListHeader))
		g.Expect(text).To(ContainSubstring("widgets.example.com v1 spec.weight integer\n"))
		g.Expect(text).To(ContainSubstring("widgets.example.com v1 spec.ports array\n"))
	})
}

func TestFacets(t *testing.T) {
	t.Run("When a schema is compared, it should include the type, bounds and default of each field", func(t *testing.T) {
		g := NewWithT(t)
		inTree(t, map[string]string{"widgets.yaml": widgetCRD})
		crds, err := readCRDs(".")
		g.Expect(err).NotTo(HaveOccurred())
		fields := facetsOf(crds[0])
		g.Expect(fields["spec.size"].Required).To(BeTrue())
		g.Expect(fields["spec.ports"].Required).To(BeFalse())
		g.Expect(fields["spec.ports"].Bounds).To(Equal("[null,null,null,null,null,3,null,null]"))
		g.Expect(fields["spec.ports[]"].Type).To(Equal("integer/int32"))
		g.Expect(fields["spec.labels{}"].Default).To(Equal(`"x"`))
	})
}
