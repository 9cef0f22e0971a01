// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// typePackage is one package of api/.
type typePackage struct {
	group, version string
	types          map[string]*typeDoc
	order          []string
}

// typeDoc is one type.
type typeDoc struct {
	name, doc string
	markers   markers
	kind      bool
	fields    []fieldDoc
}

// fieldDoc is one field. base is its type without pointers, lists and maps.
type fieldDoc struct {
	name, typeText, base, doc string
	inline                    bool
	markers                   markers
}

func parsePackage(folder string) (*typePackage, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	pkg := &typePackage{version: filepath.Base(folder), types: map[string]*typeDoc{}}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading the types of %s: %w", path, err)
		}
		if _, found := splitComment(parsed.Doc); pkg.group == "" {
			pkg.group = found.text("groupName=")
		}
		for _, declaration := range parsed.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.TYPE {
				pkg.add(general)
			}
		}
	}
	return pkg, nil
}

func (p *typePackage) add(declaration *ast.GenDecl) {
	for _, spec := range declaration.Specs {
		typeSpec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		doc, found := splitComment(declaration.Doc, typeSpec.Doc)
		t := &typeDoc{name: typeSpec.Name.Name, doc: doc, markers: found}
		if body, ok := typeSpec.Type.(*ast.StructType); ok {
			t.fields = fieldsOfStruct(body)
		}
		t.kind = found.has("kubebuilder:object:root=true") && !strings.HasSuffix(t.name, "List")
		p.types[t.name] = t
		p.order = append(p.order, t.name)
	}
}

func fieldsOfStruct(body *ast.StructType) []fieldDoc {
	var fields []fieldDoc
	for _, field := range body.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		name, options, _ := strings.Cut(tag, ",")
		doc, found := splitComment(field.Doc)
		fields = append(fields, fieldDoc{
			name: name, typeText: yamlType(field.Type), base: baseType(field.Type),
			doc: doc, inline: options == "inline", markers: found,
		})
	}
	return fields
}

// yamlType returns the type as YAML shows it: without pointers.
func yamlType(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return yamlType(e.X)
	case *ast.ArrayType:
		return "[]" + yamlType(e.Elt)
	case *ast.MapType:
		return "map[" + yamlType(e.Key) + "]" + yamlType(e.Value)
	default:
		name := types.ExprString(expression)
		if written, ok := writtenAs[name]; ok {
			return written
		}
		return name
	}
}

// writtenAs maps Go types to different YAML types.
var writtenAs = map[string]string{
	"ipnet.IPNet":        "string",
	"metav1.Duration":    "string",
	"metav1.Time":        "string",
	"resource.Quantity":  "quantity",
	"intstr.IntOrString": "int or string",
	"configv1.URL":       "string",
}

func baseType(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return baseType(e.X)
	case *ast.ArrayType:
		return baseType(e.Elt)
	case *ast.MapType:
		return baseType(e.Value)
	default:
		return types.ExprString(expression)
	}
}

// foremost lists the kinds that users write.
var foremost = []string{"NodePool", "HostedCluster"}

// kinds returns the types that can be separate YAML documents, those that users write first.
func (p *typePackage) kinds() []*typeDoc {
	var kinds []*typeDoc
	for _, name := range p.order {
		if t := p.types[name]; t.kind {
			kinds = append(kinds, t)
		}
	}
	slices.SortFunc(kinds, func(a, b *typeDoc) int {
		if first := slices.Index(foremost, b.name) - slices.Index(foremost, a.name); first != 0 {
			return first
		}
		return strings.Compare(a.name, b.name)
	})
	return kinds
}

// reachable lists the kinds, each followed by the types of its fields. Fields of embedded types become its own.
func (p *typePackage) reachable() []*typeDoc {
	var listed []*typeDoc
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		t, ok := p.types[name]
		if !ok || seen[name] {
			return
		}
		seen[name] = true
		t.fields = p.flatten(t.fields)
		listed = append(listed, t)
		for _, f := range t.fields {
			visit(f.base)
		}
	}
	for _, kind := range p.kinds() {
		visit(kind.name)
	}
	return listed
}

func (p *typePackage) flatten(fields []fieldDoc) []fieldDoc {
	var out []fieldDoc
	for _, f := range fields {
		embedded, ok := p.types[f.base]
		switch {
		case f.inline && ok:
			out = append(out, p.flatten(embedded.fields)...)
		case !f.inline && f.name != "metadata":
			out = append(out, f)
		}
	}
	return out
}
