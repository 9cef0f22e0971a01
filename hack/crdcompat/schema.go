// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// walker collects the changes of one version of a kind.
type walker struct {
	crd, version string
	changes      []change
}

func (w *walker) add(path, kind, detail string) {
	w.changes = append(w.changes, change{CRD: w.crd, Version: w.version, Path: path, Kind: kind, Detail: detail})
}

// schema compares a field recursively.
func (w *walker) schema(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	w.types(path, old, now)
	w.values(path, old, now)
	w.bounds(path, old, now)
	w.rules(path, old, now)
	w.properties(path, old, now)
	w.nested(path+"[]", itemsOf(old), itemsOf(now))
	w.nested(path+"{}", valuesOf(old), valuesOf(now))
}

// nested compares the elements of lists or maps. A schema without a type has neither items nor values.
func (w *walker) nested(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	switch {
	case old == nil:
	case now == nil:
		w.add(path, fieldRemoved, "no schema of what it holds")
	default:
		w.schema(path, old, now)
	}
}

func (w *walker) types(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	if before, after := typeOf(old), typeOf(now); before != after && after != "any" {
		w.add(path, typeChanged, arrow("type", before, after))
	}
	if before, after := old.Format, now.Format; before != after && after != "" {
		w.add(path, typeChanged, arrow("format", before, after))
	}
	if old.Nullable && !now.Nullable {
		w.add(path, nullRefused, "nullable: true -> false")
	}
	if isTrue(old.XPreserveUnknownFields) && !isTrue(now.XPreserveUnknownFields) {
		w.add(path, unknownPruned, "x-kubernetes-preserve-unknown-fields: true -> absent")
	}
	if old.XEmbeddedResource != now.XEmbeddedResource {
		w.add(path, typeChanged, "x-kubernetes-embedded-resource changed")
	}
	for name, lists := range map[string][2]*string{
		"x-kubernetes-list-type": {old.XListType, now.XListType},
		"x-kubernetes-map-type":  {old.XMapType, now.XMapType},
	} {
		if before, after := pointed(lists[0]), pointed(lists[1]); before != after {
			w.add(path, listTypeChanged, arrow(name, before, after))
		}
	}
	if before, after := strings.Join(old.XListMapKeys, ","), strings.Join(now.XListMapKeys, ","); before != after {
		w.add(path, listTypeChanged, arrow("x-kubernetes-list-map-keys", before, after))
	}
}

// values compares the accepted values and the default.
func (w *walker) values(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	before, after := rawOf(old.Default), rawOf(now.Default)
	if before != after {
		w.add(path, defaultChanged, arrow("default", before, after))
	}
	if now.Pattern != "" && now.Pattern != old.Pattern {
		w.add(path, patternChanged, arrow("pattern", old.Pattern, now.Pattern))
	}
	if len(now.Enum) == 0 {
		return
	}
	if len(old.Enum) == 0 {
		w.add(path, enumNarrowed, arrow("enum", "", strings.Join(enumOf(now), " ")))
	}
	for _, value := range enumOf(old) {
		if !slices.Contains(enumOf(now), value) {
			w.add(path, enumNarrowed, "value removed: "+value)
		}
	}
}

func (w *walker) rules(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	known := map[string]bool{}
	for _, rule := range old.XValidations {
		known[rule.Rule] = true
	}
	for _, rule := range now.XValidations {
		if !known[rule.Rule] {
			w.add(path, ruleAdded, rule.Rule)
		}
	}
	for name, schemas := range map[string][2]any{
		"allOf": {old.AllOf, now.AllOf}, "anyOf": {old.AnyOf, now.AnyOf}, "oneOf": {old.OneOf, now.OneOf},
		"not": {old.Not, now.Not},
	} {
		if before, after := jsonOf(schemas[0]), jsonOf(schemas[1]); before != after && after != "null" {
			w.add(path, schemasChanged, arrow(name, before, after))
		}
	}
}

func (w *walker) properties(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	for _, key := range slices.Sorted(maps.Keys(old.Properties)) {
		before, below := old.Properties[key], strings.TrimPrefix(path+"."+key, ".")
		after, ok := now.Properties[key]
		if !ok {
			w.add(below, fieldRemoved, "was "+typeOf(&before))
			continue
		}
		w.schema(below, &before, &after)
	}
	for _, key := range now.Required {
		// The API server sets defaults before it validates.
		if property := now.Properties[key]; !slices.Contains(old.Required, key) && property.Default == nil {
			w.add(strings.TrimPrefix(path+"."+key, "."), fieldRequired, "required: absent -> true")
		}
	}
}

func itemsOf(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}

func valuesOf(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.AdditionalProperties == nil {
		return nil
	}
	return schema.AdditionalProperties.Schema
}

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "int-or-string"
	case schema.Type == "":
		return "any"
	default:
		return schema.Type
	}
}

func enumOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	var values []string
	for _, value := range schema.Enum {
		values = append(values, string(value.Raw))
	}
	return values
}

// rawOf returns a value as canonical JSON, so that the order of keys does not matter.
func rawOf(value *apiextensionsv1.JSON) string {
	if value == nil {
		return ""
	}
	var parsed any
	if err := json.Unmarshal(value.Raw, &parsed); err != nil {
		return string(value.Raw)
	}
	return jsonOf(parsed)
}

func jsonOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func isTrue(value *bool) bool { return value != nil && *value }

func pointed(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
