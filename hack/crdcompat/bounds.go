// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// bounds compares limits of numbers, lengths and counts.
func (w *walker) bounds(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	narrowed := func(name string, yes bool, from, to any) {
		if yes {
			w.add(path, boundNarrowed, arrow(name, fmt.Sprint(from), fmt.Sprint(to)))
		}
	}
	oldLeast, oldMost := limits(old)
	least, most := limits(now)
	narrowed("minimum", raised(oldLeast, least), text(old.Minimum), text(now.Minimum))
	narrowed("maximum", lowered(oldMost, most), text(old.Maximum), text(now.Maximum))
	narrowed("exclusiveMinimum", now.ExclusiveMinimum && !old.ExclusiveMinimum, false, true)
	narrowed("exclusiveMaximum", now.ExclusiveMaximum && !old.ExclusiveMaximum, false, true)
	narrowed("multipleOf", now.MultipleOf != nil && text(now.MultipleOf) != text(old.MultipleOf), text(old.MultipleOf),
		text(now.MultipleOf))
	narrowed("uniqueItems", now.UniqueItems && !old.UniqueItems, false, true)
	narrowed("minLength", raised(old.MinLength, now.MinLength), text(old.MinLength), text(now.MinLength))
	narrowed("maxLength", lowered(old.MaxLength, now.MaxLength), text(old.MaxLength), text(now.MaxLength))
	narrowed("minItems", raised(old.MinItems, now.MinItems), text(old.MinItems), text(now.MinItems))
	narrowed("maxItems", lowered(old.MaxItems, now.MaxItems), text(old.MaxItems), text(now.MaxItems))
	narrowed("minProperties", raised(old.MinProperties, now.MinProperties), text(old.MinProperties),
		text(now.MinProperties))
	narrowed("maxProperties", lowered(old.MaxProperties, now.MaxProperties), text(old.MaxProperties),
		text(now.MaxProperties))
}

// limits returns the least and greatest number that a schema accepts. The API server also enforces the range of the
// format.
func limits(schema *apiextensionsv1.JSONSchemaProps) (least, most *float64) {
	least, most = schema.Minimum, schema.Maximum
	if schema.Type != "integer" || schema.Format != "int32" {
		return least, most
	}
	lowest, highest := float64(math.MinInt32), float64(math.MaxInt32)
	if least == nil || *least < lowest {
		least = &lowest
	}
	if most == nil || *most > highest {
		most = &highest
	}
	return least, most
}

func raised[T cmp.Ordered](old, now *T) bool { return now != nil && (old == nil || *now > *old) }

func lowered[T cmp.Ordered](old, now *T) bool { return now != nil && (old == nil || *now < *old) }

func text[T any](value *T) string {
	if value == nil {
		return ""
	}
	return jsonOf(*value)
}
