// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

const served = `
metadata: {name: awsclusters.infrastructure.cluster.x-k8s.io, labels: {kept: "yes", replaced: "no"}}
spec:
  versions:
  - {name: v1alpha3, served: false}
  - name: v1beta1
    served: true
    schema: {openAPIV3Schema: {description: for people, type: object}}
  - {name: v1alpha4}
  - name: v1beta2
    served: true
    schema: {openAPIV3Schema: {type: object, properties: {description: {type: string, description: for people}}}}
`

func TestTrimToServed(t *testing.T) {
	t.Run("When versions are not served, it should remove them, and descriptions from the others", func(t *testing.T) {
		g, crd := NewWithT(t), parse(t, served)
		g.Expect(trimToServed(crd)).To(Succeed())
		var names []any
		for _, version := range versions(crd) {
			names = append(names, version["name"])
		}
		g.Expect(names).To(Equal([]any{"v1beta1", "v1beta2"}))
		g.Expect(versions(crd)[0]["schema"]).To(Equal(object{"openAPIV3Schema": object{"type": "object"}}))
		g.Expect(versions(crd)[1]["schema"]).To(Equal(object{"openAPIV3Schema": object{"type": "object", "properties": object{"description": object{"type": "string"}}}}))
	})
	t.Run("When a served version has no schema, it should return an error", func(t *testing.T) {
		crd := parse(t, "spec: {versions: [{name: v1, served: true}]}")
		NewWithT(t).Expect(trimToServed(crd)).To(MatchError(ContainSubstring("there is no schema")))
	})
}

func TestCRDFile(t *testing.T) {
	g, crd := NewWithT(t), parse(t, served)
	setLabels(crd, map[string]any{"replaced": "yes", "added": "yes"})
	g.Expect(crd["metadata"].(object)["labels"]).To(Equal(object{"kept": "yes", "replaced": "yes", "added": "yes"}))
	bare := parse(t, "metadata: {name: machines.cluster.x-k8s.io}")
	setLabels(bare, map[string]any{"added": "yes"})
	f, err := crdFile("clusterapi", bare)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.path).To(Equal("support/crds/clusterapi/cluster.x-k8s.io_machines.yaml"))
	g.Expect(string(f.data)).To(Equal(madeBy + "metadata:\n  labels:\n    added: \"yes\"\n  name: machines.cluster.x-k8s.io\n"))
}

func TestSorted(t *testing.T) {
	crds := map[string]object{"c": {"n": 3}, "a": {"n": 1}, "b": {"n": 2}}
	for range 5 {
		if diff := cmp.Diff([]object{{"n": 1}, {"n": 2}, {"n": 3}}, sorted(crds)); diff != "" {
			t.Fatalf("files are made in one order (-want +got):\n%s", diff)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]int{"{}": 0, "spec: {}": 0, "spec: {versions: {}}": 0, "spec: {versions: [{name: a}, b, {name: c}]}": 2} {
		if got := len(versions(parse(t, text))); got != want {
			t.Errorf("%s has %d versions and not %d", text, got, want)
		}
	}
}

// TestManifests checks that, of the CRDs that OpenShift publishes for one resource, the one of the Default feature set
// is used.
func TestManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"one CRD for all feature sets":                   {[]string{"0000_10_config_apiservers.crd.yaml"}, "0000_10_config_apiservers.crd.yaml"},
		"one CRD for each feature set":                   {[]string{"0_apiservers-CustomNoUpgrade.crd.yaml", "0_apiservers-Default.crd.yaml", "0_apiservers-TechPreviewNoUpgrade.crd.yaml"}, "0_apiservers-Default.crd.yaml"},
		"one CRD for each topology":                      {[]string{"0_apiservers-SelfManagedHA.crd.yaml", "0_apiservers-Hypershift.crd.yaml"}, "0_apiservers-Hypershift.crd.yaml"},
		"one CRD for each topology and feature set":      {[]string{"0_apiservers-Hypershift-Default.crd.yaml", "0_apiservers-Hypershift-CustomNoUpgrade.crd.yaml"}, "0_apiservers-Hypershift-Default.crd.yaml"},
		"one CRD for a custom feature set only":          {[]string{"0_apiservers-CustomNoUpgrade.crd.yaml"}, ""},
		"one CRD of a resource whose name ends the same": {[]string{"0_myapiservers.crd.yaml"}, ""},
		"two ambiguous CRDs":                             {[]string{"0_apiservers.crd.yaml", "1_apiservers.crd.yaml"}, ""},
		"none":                                           {nil, ""},
	} {
		t.Run("When there is "+name+" it should use the one for the Default feature set, if any", func(t *testing.T) {
			g, m := NewWithT(t), manifests{folder: t.TempDir()}
			for _, file := range tc.files {
				g.Expect(os.WriteFile(filepath.Join(m.folder, file), []byte("metadata: {name: "+file+"}\n"), 0o600)).To(Succeed())
			}
			crd, err := m.crd("apiservers")
			if tc.want == "" {
				g.Expect(err).To(MatchError(ContainSubstring("has no CRD of apiservers")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(crd).To(HaveKeyWithValue("metadata", HaveKeyWithValue("name", tc.want)))
		})
	}
}

// TestApplyGraft uses the CRDs of the module version that we build with.
func TestApplyGraft(t *testing.T) {
	ours := func(t *testing.T) object {
		t.Helper()
		return parse(t, `
spec:
  versions:
  - name: v1beta1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              scheduler: {description: ours, type: object}
`)
	}
	t.Run("When our CRD has the field, it should get OpenShift's schema and keep our description", func(t *testing.T) {
		g, crd := NewWithT(t), ours(t)
		g.Expect(graft{"spec.scheduler", "config/v1", "schedulers", "spec"}.apply(crd)).To(Succeed())
		scheduler, err := property(crd, "spec.scheduler")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(scheduler["description"]).To(Equal("ours"))
		g.Expect(scheduler["properties"]).To(HaveKeyWithValue("profile", HaveKeyWithValue("enum", ContainElement("HighNodeUtilization"))))
	})
	t.Run("When our CRD lacks the field, nothing should change", func(t *testing.T) {
		g, crd := NewWithT(t), ours(t)
		g.Expect(graft{"spec.another", "config/v1", "schedulers", "spec"}.apply(crd)).To(Succeed())
		g.Expect(graft{"status.scheduler.deep", "config/v1", "schedulers", "spec"}.apply(crd)).To(Succeed())
		g.Expect(crd).To(Equal(ours(t)))
	})
	t.Run("When OpenShift no longer has the field, it should return an error and keep our schema", func(t *testing.T) {
		g, crd := NewWithT(t), ours(t)
		g.Expect(graft{"spec.scheduler", "config/v1", "schedulers", "spec.gone"}.apply(crd)).To(MatchError(ContainSubstring("no spec.gone")))
		g.Expect(graft{"spec.scheduler", "config/v1", "gone", "spec"}.apply(crd)).To(MatchError(ContainSubstring("no CRD of gone")))
		g.Expect(crd).To(Equal(ours(t)))
	})
}

func TestReadObjects(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	for file, text := range map[string]string{"a.yaml": "metadata: {name: one}", "b.yaml": "metadata: {name: two}", "c.txt": "no: [yaml"} {
		g.Expect(os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)).To(Succeed())
	}
	objects, err := readObjects(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(And(HaveLen(2), HaveKey("one"), HaveKey("two")))
	g.Expect(os.WriteFile(filepath.Join(dir, "d.yaml"), []byte("a: [b"), 0o600)).To(Succeed())
	_, err = readObjects(dir)
	g.Expect(err).To(MatchError(ContainSubstring("d.yaml")))
	_, err = readObject(filepath.Join(dir, "gone.yaml"))
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

// TestWithoutControllerGen checks that the error names a missing tool, before anything in the tree changes.
func TestWithoutControllerGen(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	g.Expect(choose("bin/controller-gen", false, false, "")).To(MatchError(HavePrefix("making the deep copies")))
	left, err := os.ReadDir(scratch)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
}
