// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// fieldListPath is the list of all fields that were ever published. Fields are added to it and never removed.
const fieldListPath = "api/fields.txt"

const fieldListHeader = `# Every field of our kinds that was ever published: kind, version, path, type. ` + "`make generate`" + ` adds fields and takes
# none away; ` + "`make verify-api`" + ` fails when one is lost or has another type. Take a line away by hand only together with its
# version of the API.
`

// ownFolders are the folders of support/crds whose fields this project guarantees.
var ownFolders = []string{"hypershift", "certificates", "infrastructure", "agent", "kubevirt"}

// fieldList adds the fields of the newly generated CRDs to the list.
func fieldList(g generator) ([]file, error) {
	fields := map[string]string{}
	for _, f := range g.made {
		if !isOwn(f.path) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(f.data, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.path, err)
		}
		maps.Copy(fields, fieldsOf(crd))
	}
	published, err := readFieldList()
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for field, kind := range published {
		if !accepts(fields[field], kind) {
			fields[field] = kind
		}
	}
	var text strings.Builder
	text.WriteString(fieldListHeader)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&text, "%s %s\n", field, fields[field])
	}
	return []file{{path: fieldListPath, data: []byte(text.String())}}, nil
}

func isOwn(path string) bool {
	relative, err := filepath.Rel(crdFolder, path)
	return err == nil && slices.Contains(ownFolders, filepath.Dir(relative))
}

// verifyFields fails if the CRDs in the tree lack a field of the list, or have it with a different type.
func verifyFields() error {
	published, err := readFieldList()
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, folder := range ownFolders {
		crds, err := readCRDs(filepath.Join(crdFolder, folder))
		if err != nil {
			return err
		}
		for _, crd := range crds {
			maps.Copy(now, fieldsOf(crd))
		}
	}
	var lost []string
	for _, field := range slices.Sorted(maps.Keys(published)) {
		switch kind, ok := now[field]; {
		case !ok:
			lost = append(lost, field+" is lost")
		case !accepts(kind, published[field]):
			lost = append(lost, fmt.Sprintf("%s was %s and is %s", field, published[field], kind))
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("stored objects and manifests of users may have fields that the API no longer has:\n  %s", strings.Join(lost, "\n  "))
	}
	fmt.Printf("%d published fields are all there\n", len(published))
	return nil
}

// accepts reports whether a field of one type accepts every value of another.
func accepts(now, published string) bool {
	widened := now == "int-or-string" && (strings.HasPrefix(published, "integer") || published == "string")
	return now == published || widened
}

func readFieldList() (map[string]string, error) {
	data, err := os.ReadFile(fieldListPath)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndex(line, " "); i > 0 && !strings.HasPrefix(line, "#") {
			fields[line[:i]] = line[i+1:]
		}
	}
	return fields, nil
}

func readCRDs(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// fieldsOf returns the type of each field of a CRD, by its name, version and path.
func fieldsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	fields := map[string]string{}
	for _, version := range crd.Spec.Versions {
		walk("", version.Schema.OpenAPIV3Schema, func(path string, schema *apiextensionsv1.JSONSchemaProps, _ bool) {
			if path != "" {
				fields[crd.Name+" "+version.Name+" "+path] = typeOf(schema)
			}
		})
	}
	return fields
}

// walk visits a schema recursively. The path of items ends with "[]", that of map values with "{}".
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(path string, schema *apiextensionsv1.JSONSchemaProps, required bool)) {
	var into func(path string, schema *apiextensionsv1.JSONSchemaProps, required bool)
	into = func(path string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
		visit(path, schema, required)
		for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[key]
			into(strings.TrimPrefix(path+"."+key, "."), &property, slices.Contains(schema.Required, key))
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			into(path+"[]", schema.Items.Schema, false)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			into(path+"{}", schema.AdditionalProperties.Schema, false)
		}
	}
	into(path, schema, false)
}

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	kind := schema.Type
	switch {
	case schema.XIntOrString:
		kind = "int-or-string"
	case kind == "":
		kind = "any"
	}
	if schema.Format != "" {
		kind += "/" + schema.Format
	}
	return kind
}
