// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/crds"
)

const releasedCRD = `
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [tg], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [name]
            properties:
              name: {type: string, minLength: 1, pattern: ^a}
              mode: {type: string, enum: [A, B], default: A}
              free: {type: string}
              count: {type: integer, format: int32, maximum: 10}
              old: {type: string, nullable: true}
              port: {x-kubernetes-int-or-string: true}
              labels: {type: object, additionalProperties: {type: string}}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              list:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [key]
                items: {type: object, required: [key], properties: {key: {type: string}, value: {type: string}}}
                x-kubernetes-validations:
                - {rule: self.size() < 9}
`

func parse(t *testing.T, text string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(text), crd)).To(Succeed())
	return []*apiextensionsv1.CustomResourceDefinition{crd}
}

// mutated returns the released CRD with one part replaced.
func mutated(t *testing.T, from, to string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	NewWithT(t).Expect(strings.Count(releasedCRD, from)).To(Equal(1), from)
	return parse(t, strings.Replace(releasedCRD, from, to, 1))
}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want string }{
		"a removed field":         {"free: {type: string}", "", "v1 spec.free field-removed"},
		"a renamed field":         {"free: {type: string}", "freed: {type: string}", "v1 spec.free field-removed"},
		"a removed enum value":    {"enum: [A, B]", "enum: [A]", `v1 spec.mode enum-narrowed: value removed: "B"`},
		"a new enum":              {"free: {type: string}", "free: {type: string, enum: [A]}", "v1 spec.free enum-narrowed"},
		"a higher minimum length": {"minLength: 1", "minLength: 2", "v1 spec.name bound-narrowed: minLength: 1 -> 2"},
		"a new maximum length": {"free: {type: string}", "free: {type: string, maxLength: 3}",
			"spec.free bound-narrowed: maxLength: absent -> 3"},
		"a lower maximum": {"maximum: 10", "maximum: 9", "v1 spec.count bound-narrowed: maximum: 10 -> 9"},
		"a new minimum": {"maximum: 10", "maximum: 10, minimum: 0",
			"v1 spec.count bound-narrowed: minimum: absent -> 0"},
		"a newly required field": {"required: [name]", "required: [name, free]", "v1 spec.free field-required"},
		"a newly required item":  {"required: [key]", "required: [key, value]", "v1 spec.list[].value field-required"},
		"another default":        {"default: A", "default: B", `v1 spec.mode default-changed: default: "A" -> "B"`},
		"a removed default":      {", default: A", "", `v1 spec.mode default-changed: default: "A" -> absent`},
		"another list type": {
			"x-kubernetes-list-type: map", "x-kubernetes-list-type: atomic",
			"spec.list list-type-changed: x-kubernetes-list-type: map -> atomic",
		},
		"other map keys": {"[key]\n                items", "[value]\n                items",
			"spec.list list-type-changed: x-kubernetes-list-map-keys"},
		"another type": {"labels: {type: object, additionalProperties: {type: string}}", "labels: {type: string}",
			"spec.labels type-changed"},
		"another pattern": {"pattern: ^a", "pattern: ^b", "v1 spec.name pattern-changed: pattern: ^a -> ^b"},
		"a new pattern":   {"free: {type: string}", "free: {type: string, pattern: b}", "v1 spec.free pattern-changed"},
		"a new rule":      {"self.size() < 9", "self.size() < 8", "v1 spec.list rule-added: self.size() < 8"},
		"null refused":    {", nullable: true", "", "v1 spec.old null-refused"},
		"fields pruned":   {", x-kubernetes-preserve-unknown-fields: true", "", "v1 spec.any unknown-fields-pruned"},
		"a wider integer": {"x-kubernetes-int-or-string: true", "type: integer",
			"spec.port type-changed: type: int-or-string -> integer"},
		"another version":                    {"name: v1\n", "name: v2\n", "stored-version-changed: stored version: v1 -> v2"},
		"a version that is no longer served": {"served: true", "served: false", "v1 version-removed"},
		"no status":                          {"subresources: {status: {}}", "", "v1 subresource-removed"},
		"a renamed short name":               {"shortNames: [tg]", "shortNames: [th]", "names-changed: name removed: tg"},
		"another scope":                      {"scope: Namespaced", "scope: Cluster", "scope-changed"},
		"a removed kind":                     {"name: things.example.com", "name: others.example.com", "kind-removed: Thing"},
		"values of a map": {"additionalProperties: {type: string}", "additionalProperties: {type: string, maxLength: 1}",
			"spec.labels{} bound-narrowed"},
		"a format": {"free: {type: string}", "free: {type: string, format: ipv4}",
			"spec.free type-changed: format: absent -> ipv4"},
		"a schema with not": {"free: {type: string}", "free: {type: string, not: {enum: [C]}}",
			"spec.free schemas-changed: not"},
	} {
		t.Run("reports "+name, func(t *testing.T) {
			var all []string
			for _, c := range compare(parse(t, releasedCRD), mutated(t, tc.from, tc.to)) {
				all = append(all, c.String())
			}
			NewWithT(t).Expect(all).To(ContainElement(ContainSubstring(tc.want)))
		})
	}
	for name, tc := range map[string]struct{ from, to string }{
		"nothing new": {"free: {type: string}", "free: {type: string}"},
		"a new optional field": {"free: {type: string}",
			"free: {type: string}\n              more: {type: string, maxLength: 1}"},
		"a required field with a default":  {"required: [name]", "required: [name, mode]"},
		"more values":                      {"enum: [A, B]", "enum: [A, B, C]"},
		"no enum":                          {"enum: [A, B], ", ""},
		"wider bounds":                     {"maximum: 10", "maximum: 11"},
		"the limits of the integer format": {"maximum: 10", "maximum: 10, minimum: -2147483648"},
		"a removed rule":                   {"                x-kubernetes-validations:\n                - {rule: self.size() < 9}\n", ""},
		"a removed pattern":                {", pattern: ^a", ""},
		"a description":                    {"free: {type: string}", "free: {type: string, description: free text}"},
	} {
		t.Run("accepts "+name, func(t *testing.T) {
			NewWithT(t).Expect(compare(parse(t, releasedCRD), mutated(t, tc.from, tc.to))).To(BeEmpty())
		})
	}
	t.Run("accepts the CRDs of this tree as they are", func(t *testing.T) {
		g := NewWithT(t)
		for _, folder := range crds.Folders {
			loaded, err := crds.Load(folder)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(compare(loaded, loaded)).To(BeEmpty())
		}
	})
}

func TestJudge(t *testing.T) {
	changes := []change{
		{CRD: "things.example.com", Version: "v1", Path: "spec.list[].name", Kind: boundNarrowed,
			Detail: "maxLength: absent -> 3"},
		{CRD: "things.example.com", Version: "v1", Path: "spec.free", Kind: fieldRemoved, Detail: "was string"},
	}
	both := []entry{
		{Reason: "why", Change: boundNarrowed, CRD: "things.*", Path: "spec.*[].name", Detail: "maxLength: *"},
		{Reason: "why", Change: fieldRemoved, Path: "spec.free"},
	}
	t.Run("accepts changes that entries name", func(t *testing.T) {
		NewWithT(t).Expect(judge(changes, both)).To(Succeed())
	})
	t.Run("names a change without an entry", func(t *testing.T) {
		NewWithT(t).Expect(judge(changes,
			both[:1])).To(MatchError("  things.example.com v1 spec.free field-removed: was string"))
	})
	t.Run("names an entry that matches nothing", func(t *testing.T) {
		err := judge(changes[:1], both)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`"spec.free field-removed" matches nothing; remove it`)))
	})
	t.Run("does not let an entry of one kind cover another kind of change", func(t *testing.T) {
		err := judge(changes[1:], []entry{{Reason: "why", Change: typeChanged}})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.free field-removed: was string")))
	})
}
