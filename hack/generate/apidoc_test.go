// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

const widgetSource = `
// Package v1 holds widgets.
//
// +groupName=example.com
package v1

// Widget turns.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=widgets,shortName=w;ws,scope=Namespaced
type Widget struct {
	TypeMeta ` + "`json:\",inline\"`" + `
	Common ` + "`json:\",inline\"`" + `
	// spec is what it should be.
	// +required
	Spec *WidgetSpec ` + "`json:\"spec\"`" + `
}

// WidgetList is a list of widgets.
//
// +kubebuilder:object:root=true
type WidgetList struct {
	Items []Widget ` + "`json:\"items\"`" + `
}

// Common is shared.
type Common struct {
	// note of it.
	Note string ` + "`json:\"note,omitempty\"`" + `
}

// WidgetSpec is what a widget should be.
//
// +kubebuilder:validation:XValidation:rule=` + "`true`,message=`size a|b must fit`" + `
type WidgetSpec struct {
	// sizes of it.
	// It has several.
	// +kubebuilder:default={1}
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:XValidation:rule="true",message="must be \"even\""
	Sizes []Size ` + "`json:\"sizes,omitempty\"`" + `
	// timeout of it.
	Timeout map[string]metav1.Duration ` + "`json:\"timeout,omitempty\"`" + `
}

// Size is a size.
//
// +kubebuilder:validation:Enum=S;L
type Size string

// Unused is not reached.
type Unused struct{}
`

func TestSections(t *testing.T) {
	g := NewWithT(t)
	inTree(t, map[string]string{"v1/types.go": widgetSource})
	pkg, err := parsePackage("v1")
	g.Expect(err).NotTo(HaveOccurred())
	text := map[string]string{}
	var order []string
	for _, described := range pkg.reachable() {
		text[described.name] = pkg.section(described)
		order = append(order, described.name)
	}

	t.Run("When types are listed, it should include those that a kind references, and no list types", func(t *testing.T) {
		NewWithT(t).Expect(order).To(Equal([]string{"Widget", "WidgetSpec", "Size"}))
	})
	t.Run("When a kind is described, it should show its apiVersion and list embedded fields as its own", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(text["Widget"]).To(ContainSubstring("Widget turns.\n"))
		g.Expect(text["Widget"]).To(ContainSubstring("`apiVersion: example.com/v1`, `kind: Widget`. Short names: `w`, `ws`."))
		g.Expect(text["Widget"]).To(ContainSubstring("| `note` | `string` | note of it. |"))
		g.Expect(text["Widget"]).To(ContainSubstring("| **`spec`** | [`WidgetSpec`](#example-com-widgetspec) | spec is what it should be. |"))
	})
	t.Run("When a field has defaults, bounds and rules, it should document them", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(text["WidgetSpec"]).To(ContainSubstring("- Rule: size a|b must fit"))
		g.Expect(text["WidgetSpec"]).To(ContainSubstring(
			"| `sizes` | [`[]Size`](#example-com-size) | sizes of it. It has several. Default: `{1}`. At most 3 items. Rule: must be \"even\". |"))
		g.Expect(text["WidgetSpec"]).To(ContainSubstring("| `timeout` | `map[string]string` |"))
	})
	t.Run("When a type has enum values, it should document them", func(t *testing.T) {
		NewWithT(t).Expect(text["Size"]).To(ContainSubstring("One of `S`, `L`."))
	})
}
