// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestStrip(t *testing.T) {
	t.Run("When a schema is stripped, it should lose descriptions but keep a property named description", func(t *testing.T) {
		schema := parse(t, `
description: top
properties:
  description: {type: string, description: text, format: hostname}
  when: {type: string, format: date-time}
  list: {items: {description: text, type: object, properties: {a: {description: text}}}}
  map: {additionalProperties: {description: text}}
`)
		strip(schema)
		want := parse(t, `
properties:
  description: {type: string}
  when: {type: string, format: date-time}
  list: {items: {type: object, properties: {a: {}}}}
  map: {additionalProperties: {}}
`)
		if diff := cmp.Diff(want, schema); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAt(t *testing.T) {
	o := parse(t, "spec: {versions: [{name: v1}]}")
	t.Run("When the path contains a list, it should use the first item", func(t *testing.T) {
		g := NewWithT(t)
		found, err := at(o, "spec", "versions")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(HaveKeyWithValue("name", "v1"))
	})
	t.Run("When the path does not exist, it should say where it ends", func(t *testing.T) {
		_, err := at(o, "spec", "names", "kind")
		NewWithT(t).Expect(err).To(MatchError("there is no spec.names"))
	})
}

func TestGraft(t *testing.T) {
	const theirs = `
metadata: {name: proxies.config.openshift.io}
spec: {versions: [{schema: {openAPIV3Schema: {properties: {spec: {description: theirs, type: object,
  x-kubernetes-list-type: atomic, properties: {noProxy: {type: string, description: theirs}}}}}}}]}
`
	inTree(t, map[string]string{
		"m/00_proxies-CustomNoUpgrade.crd.yaml": "metadata: {name: wrong}",
		"m/00_proxies-Default.crd.yaml":         theirs,
	})
	t.Run("When a resource has several feature sets, it should use the default one", func(t *testing.T) {
		g := NewWithT(t)
		crd, err := manifests{folder: "m"}.crd("proxies")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(name(crd)).To(Equal("proxies.config.openshift.io"))
	})
	t.Run("When a resource has no CRD, it should return an error", func(t *testing.T) {
		_, err := manifests{folder: "m"}.crd("networks")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no CRD of networks")))
	})
	t.Run("When a part is replaced, it should keep our descriptions and drop those of the source", func(t *testing.T) {
		ours := parse(t, `spec: {versions: [{schema: {openAPIV3Schema: {properties: {spec: {properties: {proxy: {description: ours, type: string}}}}}}}]}`)
		source := parse(t, theirs)
		scion, err := property(source, "spec")
		if err != nil {
			t.Fatal(err)
		}
		branch, err := property(ours, "spec")
		if err != nil {
			t.Fatal(err)
		}
		replace(branch["properties"].(object), "proxy", scion)
		got, err := property(ours, "spec.proxy")
		if err != nil {
			t.Fatal(err)
		}
		want := parse(t, "{description: ours, type: object, properties: {noProxy: {type: string}}}")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
