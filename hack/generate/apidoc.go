// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

const referencePath = "docs/reference/api.md"

const referenceHeader = `<!-- Made by ` + "`make generate`" + ` from the types in api/; do not edit. -->
# API reference

Every kind that can be written in YAML, field by field. A field in **bold** is required. "Rules" are what the API server
refuses, with the message that it gives. ` + "`kubectl explain`" + ` prints the same on a cluster.
`

// referencePage generates docs/reference/api.md.
func referencePage(generator) ([]file, error) {
	var page strings.Builder
	page.WriteString(referenceHeader)
	var packages []*typePackage
	for _, folder := range apiPackages {
		pkg, err := parsePackage(filepath.Join("api", folder))
		if err != nil {
			return nil, err
		}
		packages = append(packages, pkg)
		fmt.Fprintf(&page, "\n- %s\n", pkg.group+"/"+pkg.version)
		for _, kind := range pkg.kinds() {
			fmt.Fprintf(&page, "  - [%s](#%s)\n", kind.name, pkg.anchor(kind.name))
		}
	}
	for _, pkg := range packages {
		fmt.Fprintf(&page, "\n## %s/%s\n", pkg.group, pkg.version)
		for _, described := range pkg.reachable() {
			page.WriteString(pkg.section(described))
		}
	}
	return []file{{path: referencePath, data: []byte(page.String())}}, nil
}

// section describes one type.
func (p *typePackage) section(t *typeDoc) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n### %s\n\n<a id=\"%s\"></a>%s\n", t.name, p.anchor(t.name), t.doc)
	if t.kind {
		fmt.Fprintf(&text, "\nIn YAML: `apiVersion: %s/%s`, `kind: %s`.", p.group, p.version, t.name)
		if names := t.markers.value("kubebuilder:resource:", "shortName"); names != "" {
			fmt.Fprintf(&text, " Short names: `%s`.", strings.ReplaceAll(names, ";", "`, `"))
		}
		text.WriteString("\n")
	}
	if values := t.markers.text("kubebuilder:validation:Enum="); values != "" {
		fmt.Fprintf(&text, "\nOne of `%s`.\n", strings.ReplaceAll(values, ";", "`, `"))
	}
	for _, message := range t.markers.rules() {
		fmt.Fprintf(&text, "\n- Rule: %s", message)
	}
	if len(t.markers.rules()) > 0 {
		text.WriteString("\n")
	}
	if len(t.fields) > 0 {
		text.WriteString("\n| Field | Type | What |\n|---|---|---|\n")
	}
	for _, f := range t.fields {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", f.heading(), p.link(f), f.description())
	}
	return text.String()
}

func (f fieldDoc) heading() string {
	if f.markers.has("required") {
		return "**`" + f.name + "`**"
	}
	return "`" + f.name + "`"
}

// link returns the type name of a field, with a link if the page describes the type.
func (p *typePackage) link(f fieldDoc) string {
	name := strings.ReplaceAll(f.typeText, "|", "\\|")
	if _, ok := p.types[f.base]; !ok {
		return "`" + name + "`"
	}
	return fmt.Sprintf("[`%s`](#%s)", name, p.anchor(f.base))
}

// description returns the field's comment and the content of its markers.
func (f fieldDoc) description() string {
	parts := []string{f.doc}
	if value := f.markers.text("kubebuilder:default=", "kubebuilder:default:="); value != "" {
		parts = append(parts, "Default: `"+strings.Trim(value, `"`)+"`.")
	}
	if values := f.markers.text("kubebuilder:validation:Enum="); values != "" {
		parts = append(parts, "One of `"+strings.ReplaceAll(values, ";", "`, `")+"`.")
	}
	if bounds := f.markers.bounds(); bounds != "" {
		parts = append(parts, bounds)
	}
	for _, message := range f.markers.rules() {
		parts = append(parts, "Rule: "+message+".")
	}
	return strings.ReplaceAll(strings.Join(parts, " "), "|", "\\|")
}

func (p *typePackage) anchor(name string) string {
	return strings.ToLower(strings.ReplaceAll(p.group, ".", "-") + "-" + name)
}
