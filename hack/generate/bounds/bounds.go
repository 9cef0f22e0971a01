// SPDX-License-Identifier: Apache-2.0

// Package bounds adds constraints to the schemas of CRDs, so that their Go types can decode all values that an API
// server accepts.
package bounds

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/support/kinds"
)

// object is a YAML mapping.
type object = map[string]any

// Apply adds bounds to a CRD. The API server does not enforce the format date-time as Go does, accepts arrays instead
// of strings that have a format, and does not validate durations. Apply does not change a kind without a Go type. A
// type with a custom decoder that the package does not know is an error.
func Apply(crd map[string]any) error {
	scheme, err := kinds.Scheme()
	if err != nil {
		return err
	}
	metadata, _ := crd["metadata"].(object)
	spec, _ := crd["spec"].(object)
	names, _ := spec["names"].(object)
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		version, _ := item.(object)
		validation, _ := version["schema"].(object)
		root, _ := validation["openAPIV3Schema"].(object)
		group, named, kind := fmt.Sprint(spec["group"]), fmt.Sprint(version["name"]), fmt.Sprint(names["kind"])
		gvk := schema.GroupVersionKind{Group: group, Version: named, Kind: kind}
		if err := boundKind(scheme, gvk, root); err != nil {
			return fmt.Errorf("CRD %s: %w", metadata["name"], err)
		}
	}
	return nil
}

// boundKind bounds the schema of one version of a kind, except metadata, which the API server decodes itself.
func boundKind(scheme *runtime.Scheme, gvk schema.GroupVersionKind, root object) error {
	if !scheme.Recognizes(gvk) {
		return nil
	}
	kind, err := scheme.New(gvk)
	if err != nil {
		return fmt.Errorf("making a %s: %w", gvk.Kind, err)
	}
	properties, _ := root["properties"].(object)
	metadata := properties["metadata"]
	delete(properties, "metadata")
	err = boundType(root, reflect.TypeOf(kind).Elem(), "")
	if metadata != nil {
		properties["metadata"] = metadata
	}
	return err
}

// decoder bounds the values of a Go type with a custom decoder, in the schema of the field at a path.
type decoder func(schema object, path string)

// decoders maps the types with custom decoders. A decoder that accepts all JSON needs no bound.
var decoders = map[reflect.Type]decoder{
	reflect.TypeFor[metav1.Duration]():      boundDuration,
	reflect.TypeFor[metav1.Time]():          boundPattern(dateTimePattern),
	reflect.TypeFor[resource.Quantity]():    boundQuantity,
	reflect.TypeFor[intstr.IntOrString]():   boundInteger(math.MinInt32, math.MaxInt32),
	reflect.TypeFor[ipnet.IPNet]():          boundNetwork,
	reflect.TypeFor[[]byte]():               boundPattern(base64Pattern),
	reflect.TypeFor[runtime.RawExtension](): func(object, string) {},
	reflect.TypeFor[apiextensionsv1.JSON](): func(object, string) {},
}

// alsoDeclared lists types with a custom decoder that accepts a second form in addition to the declared one of the
// schema.
var alsoDeclared = []reflect.Type{reflect.TypeFor[infrav1.FailureDomains]()}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// boundType bounds the schema of a Go type recursively. Fields that exist only in the schema or only in the type do not
// matter: Go ignores them, or the API server prunes them.
func boundType(s object, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s["type"] == "string" && s["format"] != nil {
		refuseArrays(s)
	}
	if apply := decoders[t]; apply != nil {
		apply(s, path)
		return nil
	}
	if reflect.PointerTo(t).Implements(unmarshaler) && !slices.Contains(alsoDeclared, t) {
		return fmt.Errorf("%s is a %s, which decodes itself: add its bounds to decoders in hack/generate/bounds", path, t)
	}
	switch t.Kind() {
	case reflect.Struct:
		return boundFields(s, t, path)
	case reflect.Slice, reflect.Array:
		return boundNested(s, "items", t.Elem(), path+"[]")
	case reflect.Map:
		return boundNested(s, "additionalProperties", t.Elem(), path+"{}")
	case reflect.Int8, reflect.Int16, reflect.Int32:
		limit := math.Pow(2, float64(t.Bits()-1))
		boundInteger(-limit, limit-1)(s, path)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		boundInteger(0, math.Pow(2, float64(t.Bits()))-1)(s, path)
	case reflect.Uint, reflect.Uint64:
		boundAtLeast(s, 0)
	}
	return nil
}

func boundNested(s object, key string, t reflect.Type, path string) error {
	nested, ok := s[key].(object)
	if !ok {
		return nil
	}
	return boundType(nested, t, path)
}

func boundFields(s object, t reflect.Type, path string) error {
	properties, _ := s["properties"].(object)
	var problems []error
	for i := range t.NumField() {
		field := t.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch property, ok := properties[key].(object); {
		case slices.Contains(strings.Split(options, ","), "inline") || field.Anonymous && key == "":
			problems = append(problems, boundType(s, field.Type, path))
		case ok:
			problems = append(problems, boundType(property, field.Type, strings.TrimPrefix(path+"."+key, ".")))
		}
	}
	return errors.Join(problems...)
}
