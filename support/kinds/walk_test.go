// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"
)

// node is a field, item or value of a kind, with its schema in the API server and its Go type.
type node struct {
	path   string
	schema *apiextensionsv1.JSONSchemaProps
	goType reflect.Type
}

// nodes returns the nodes that are both in the schema and in the Go type, for each version of a kind. It omits
// metadata, which the API server decodes itself.
func nodes(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, scheme *runtime.Scheme) []node {
	t.Helper()
	var all []node
	for _, version := range crd.Spec.Versions {
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		if !scheme.Recognizes(gvk) {
			continue
		}
		kind, err := scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		root := version.Schema.OpenAPIV3Schema.DeepCopy()
		delete(root.Properties, "metadata")
		all = append(all, below(node{path: version.Name, schema: root, goType: reflect.TypeOf(kind).Elem()})...)
	}
	return all
}

func below(n node) []node {
	for n.goType.Kind() == reflect.Pointer {
		n.goType = n.goType.Elem()
	}
	all := []node{n}
	if n.schema.Items != nil && n.schema.Items.Schema != nil && n.goType.Kind() == reflect.Slice {
		all = append(all, below(node{n.path + "[]", n.schema.Items.Schema, n.goType.Elem()})...)
	}
	if n.schema.AdditionalProperties != nil && n.schema.AdditionalProperties.Schema != nil &&
		n.goType.Kind() == reflect.Map {
		all = append(all, below(node{n.path + "{}", n.schema.AdditionalProperties.Schema, n.goType.Elem()})...)
	}
	if n.goType.Kind() == reflect.Struct && !decodesItself(n.goType) {
		all = append(all, fields(n, n.goType)...)
	}
	return all
}

func fields(n node, t reflect.Type) []node {
	var all []node
	for i := range t.NumField() {
		member := t.Field(i)
		key, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		property, ok := n.schema.Properties[key]
		switch {
		case strings.Contains(options, "inline") || member.Anonymous && key == "":
			all = append(all, fields(n, member.Type)...)
		case ok:
			all = append(all, below(node{n.path + "." + key, &property, member.Type})...)
		}
	}
	return all
}

// leaf reports whether the Go type has neither fields nor items.
func (n node) leaf() bool {
	switch n.goType.Kind() {
	case reflect.Struct, reflect.Map:
		return decodesItself(n.goType)
	case reflect.Slice:
		return decodesItself(n.goType) || n.goType.Elem().Kind() == reflect.Uint8
	default:
		return true
	}
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// server validates the values of one schema as a kube-apiserver does.
type server struct {
	openAPI validation.SchemaValidator
	rules   *cel.Validator
	served  *structuralschema.Structural
}

func newServer(t *testing.T, n node) server {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(n.schema, internal,
		nil); err != nil {
		t.Fatal(err)
	}
	openAPI, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatalf("%s: %v", n.path, err)
	}
	s := server{openAPI: openAPI}
	if !n.leaf() || len(n.schema.XValidations) == 0 {
		return s
	}
	s.served, err = structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatalf("%s: %v", n.path, err)
	}
	s.rules = cel.NewValidator(s.served, false, celconfig.PerCallLimit)
	return s
}

// accepts reports whether the API server would store a value, and returns the value as it would be stored.
func (s server) accepts(t *testing.T, raw string) (stored []byte, ok bool) {
	t.Helper()
	var value any
	if err := utiljson.Unmarshal([]byte(raw), &value); err != nil {
		return nil, false
	}
	root := field.NewPath("value")
	if len(validation.ValidateCustomResource(root, value, s.openAPI)) > 0 {
		return nil, false
	}
	if s.rules != nil {
		problems, _ := s.rules.Validate(t.Context(), root, s.served, value, nil, celconfig.RuntimeCELCostBudget)
		if len(problems) > 0 {
			return nil, false
		}
	}
	stored, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	return stored, true
}

// verdicts caches the result for each pair of a schema and a Go type, so that each pair is tried only once.
type verdicts map[string]string

// undecodable lists the values of a kind that the API server accepts and that the Go types cannot decode.
func (v verdicts) undecodable(
	t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, scheme *runtime.Scheme,
) []string {
	t.Helper()
	var found []string
	for _, n := range nodes(t, crd, scheme) {
		key := n.key(t)
		problem, tried := v[key]
		if !tried {
			problem = n.undecodable(t)
			v[key] = problem
		}
		if problem != "" {
			found = append(found, fmt.Sprintf("%s (%s) %s", n.path, n.goType, problem))
		}
	}
	return found
}

// key identifies the schema and the Go type of a node.
func (n node) key(t *testing.T) string {
	t.Helper()
	written, err := json.Marshal(n.schema)
	if err != nil {
		t.Fatalf("%s: %v", n.path, err)
	}
	return fmt.Sprintf("%s.%s %x", n.goType.PkgPath(), n.goType, sha256.Sum256(written))
}

// undecodable describes the first value that the API server accepts and that the Go type cannot decode.
func (n node) undecodable(t *testing.T) string {
	t.Helper()
	s, accepted := newServer(t, n), 0
	for _, raw := range n.values() {
		stored, ok := s.accepts(t, raw)
		if !ok {
			continue
		}
		accepted++
		if err := kjson.UnmarshalCaseSensitivePreserveInts(stored, reflect.New(n.goType).Interface()); err != nil {
			return fmt.Sprintf("cannot decode %.60s: %v", stored, err)
		}
	}
	if accepted == 0 && decodesItself(n.goType) {
		return "accepts no value of those that were tried"
	}
	return ""
}
