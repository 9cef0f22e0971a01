// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The kinds of changes.
const (
	kindRemoved        = "kind-removed"
	scopeChanged       = "scope-changed"
	namesChanged       = "names-changed"
	versionRemoved     = "version-removed"
	storageChanged     = "stored-version-changed"
	subresourceRemoved = "subresource-removed"
	fieldRemoved       = "field-removed"
	fieldRequired      = "field-required"
	typeChanged        = "type-changed"
	enumNarrowed       = "enum-narrowed"
	boundNarrowed      = "bound-narrowed"
	patternChanged     = "pattern-changed"
	defaultChanged     = "default-changed"
	listTypeChanged    = "list-type-changed"
	ruleAdded          = "rule-added"
	nullRefused        = "null-refused"
	unknownPruned      = "unknown-fields-pruned"
	schemasChanged     = "schemas-changed"
)

// change is a difference that can reject, lose or change a user's object.
type change struct {
	// CRD is the name of the CRD, such as nodepools.hypershift.openshift.io.
	CRD string
	// Version is the API version; empty for a change of all versions.
	Version string
	// Path is the field, with "[]" for items and "{}" for map values; empty if the change is not about a field.
	Path string
	// Kind is one of the kinds above.
	Kind string
	// Detail is what changed, such as "maxLength: absent -> 64", or the rule that was added.
	Detail string
}

func (c change) String() string {
	parts := []string{c.CRD, c.Version, c.Path, c.Kind}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, " ") + ": " + c.Detail
}

// compare returns the changes between two sets of CRDs. New kinds, versions and fields do not affect existing objects.
func compare(before, after []*apiextensionsv1.CustomResourceDefinition) []change {
	var changes []change
	for _, old := range before {
		i := slices.IndexFunc(after, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == old.Name })
		if i < 0 {
			changes = append(changes, change{CRD: old.Name, Kind: kindRemoved, Detail: old.Spec.Names.Kind})
			continue
		}
		changes = append(changes, compareCRD(old, after[i])...)
	}
	return changes
}

func compareCRD(old, now *apiextensionsv1.CustomResourceDefinition) []change {
	var changes []change
	add := func(version, kind, detail string) {
		changes = append(changes, change{CRD: old.Name, Version: version, Kind: kind, Detail: detail})
	}
	if old.Spec.Scope != now.Spec.Scope {
		add("", scopeChanged, arrow("scope", string(old.Spec.Scope), string(now.Spec.Scope)))
	}
	if detail := namesLost(old.Spec.Names, now.Spec.Names); detail != "" {
		add("", namesChanged, detail)
	}
	if before, after := storedVersion(old), storedVersion(now); before != after {
		add("", storageChanged, arrow("stored version", before, after))
	}
	for _, version := range old.Spec.Versions {
		i := slices.IndexFunc(now.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version.Name
		})
		if i < 0 || version.Served && !now.Spec.Versions[i].Served {
			add(version.Name, versionRemoved, "not served")
			continue
		}
		current := now.Spec.Versions[i]
		for _, lost := range subresourcesLost(version.Subresources, current.Subresources) {
			add(version.Name, subresourceRemoved, lost)
		}
		w := walker{crd: old.Name, version: version.Name}
		w.schema("", version.Schema.OpenAPIV3Schema, current.Schema.OpenAPIV3Schema)
		changes = append(changes, w.changes...)
	}
	return changes
}

// namesLost describes the names that no longer refer to a kind.
func namesLost(old, now apiextensionsv1.CustomResourceDefinitionNames) string {
	if old.Kind != now.Kind || old.ListKind != now.ListKind {
		return arrow("kind", old.Kind+" "+old.ListKind, now.Kind+" "+now.ListKind)
	}
	current := append([]string{now.Plural, now.Singular}, now.ShortNames...)
	for _, name := range append([]string{old.Plural, old.Singular}, old.ShortNames...) {
		if !slices.Contains(current, name) {
			return "name removed: " + name
		}
	}
	for _, category := range old.Categories {
		if !slices.Contains(now.Categories, category) {
			return "category removed: " + category
		}
	}
	return ""
}

func storedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

func subresourcesLost(old, now *apiextensionsv1.CustomResourceSubresources) []string {
	had, have := subresources(old), subresources(now)
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(had)) {
		if have[name] != had[name] {
			lost = append(lost, arrow(name, had[name], have[name]))
		}
	}
	return lost
}

// subresources returns the subresources by name, with the fields that scale uses.
func subresources(of *apiextensionsv1.CustomResourceSubresources) map[string]string {
	out := map[string]string{}
	if of != nil && of.Status != nil {
		out["status"] = "served"
	}
	if of != nil && of.Scale != nil {
		selector := ""
		if of.Scale.LabelSelectorPath != nil {
			selector = *of.Scale.LabelSelectorPath
		}
		out["scale"] = strings.Join([]string{of.Scale.SpecReplicasPath, of.Scale.StatusReplicasPath, selector}, " ")
	}
	return out
}

// arrow describes a changed value.
func arrow(name, from, to string) string {
	for _, value := range []*string{&from, &to} {
		if *value == "" {
			*value = "absent"
		}
	}
	return fmt.Sprintf("%s: %s -> %s", name, from, to)
}
