// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// elsewhere lists the parts of the reference for platforms that this repository does not support.
var elsewhere = []string{
	"platform.azure", "platform.gcp", "platform.ibmcloud", "platform.openstack", "platform.powervs",
}

// facets are the properties of a field in a schema.
type facets struct {
	Type, Default, Enum, Bounds, Pattern, List string
	Required                                   bool
}

// compare prints how much of the schemas in another folder our schemas cover: fields, and their properties.
func compare(folder string) error {
	reference, err := readCRDs(folder)
	if err != nil {
		return err
	}
	var ours []*apiextensionsv1.CustomResourceDefinition
	for _, own := range ownFolders {
		crds, err := readCRDs(crdFolder + "/" + own)
		if err != nil {
			return err
		}
		ours = append(ours, crds...)
	}
	total, missing, different := 0, 0, 0
	for _, theirs := range reference {
		i := slices.IndexFunc(ours, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == theirs.Name })
		if i < 0 {
			fmt.Printf("%s: kind missing\n", theirs.Name)
			continue
		}
		want, have := facetsOf(theirs), facetsOf(ours[i])
		for _, path := range sortedKeys(want) {
			total++
			got, ok := have[path]
			switch {
			case !ok:
				missing++
				fmt.Printf("%s: %s missing\n", theirs.Name, path)
			case got != want[path]:
				different++
				fmt.Printf("%s: %s\n  theirs %+v\n  ours   %+v\n", theirs.Name, path, want[path], got)
			}
		}
	}
	fmt.Printf("%d fields in the reference, %d missing, %d said differently\n", total, missing, different)
	return nil
}

func sortedKeys(fields map[string]facets) []string {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func facetsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]facets {
	fields := map[string]facets{}
	walk("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
		for _, part := range elsewhere {
			if strings.Contains(path, part) {
				return
			}
		}
		fields[path] = facets{
			Type: typeOf(schema), Default: asText(schema.Default), Enum: enumText(schema.Enum),
			Bounds: asText([]any{schema.Minimum, schema.Maximum, schema.MinLength, schema.MaxLength, schema.MinItems,
				schema.MaxItems, schema.MinProperties, schema.MaxProperties}),
			Pattern: schema.Pattern, List: asText([]any{schema.XListType, schema.XListMapKeys}), Required: required,
		}
	})
	return fields
}

func enumText(enum []apiextensionsv1.JSON) string {
	var values []string
	for _, value := range enum {
		values = append(values, string(value.Raw))
	}
	slices.Sort(values)
	return strings.Join(values, " ")
}

func asText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
