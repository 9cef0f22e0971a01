// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"go/types"
	"reflect"
	"slices"
	"strings"
)

const (
	hypershiftAPI = module + "api/hypershift/v1beta1"
	maasAPI       = module + "api/infrastructure/v1beta1"
	openshiftAPI  = "github.com/openshift/api/config/v1"
)

// walked lists the packages whose structs are traversed. Types of other packages, such as a taint or a quantity, count
// as values.
var walked = []string{hypershiftAPI, maasAPI, openshiftAPI}

// references are structs that count as values too: they contain only a name.
var references = []string{"SecretNameReference", "ConfigMapNameReference"}

// field is a value that a user can set.
type field struct {
	// path is the YAML path relative to the spec; lists have [] after their name, maps {}.
	path string
	// readers are the packages that read it.
	readers []string
}

// fieldsOf lists all values under a spec, in the order of the type. A field that is passed on counts as read where its
// copy is read.
func (s *source) fieldsOf(path, spec, passedTo string) ([]field, error) {
	t, err := s.typeOf(path, spec)
	if err != nil {
		return nil, err
	}
	fields := s.walk(t, "", nil)
	if passedTo == "" {
		return fields, nil
	}
	end, err := s.typeOf(path, passedTo)
	if err != nil {
		return nil, err
	}
	ends := s.walk(end, "", nil)
	for i := range fields {
		at := slices.IndexFunc(ends, func(f field) bool { return f.path == fields[i].path })
		if at >= 0 && len(fields[i].readers) == 0 {
			fields[i].readers = ends[at].readers
		}
	}
	return fields, nil
}

func (s *source) walk(t types.Type, path string, within []string) []field {
	named, ok := walkable(t)
	if !ok || slices.Contains(within, named.Obj().Name()) {
		return nil
	}
	structure := named.Underlying().(*types.Struct)
	var all []field
	for i := range structure.NumFields() {
		member := structure.Field(i)
		memberPath := join(path, structure.Tag(i)) + suffix(member.Type())
		children := s.walk(elem(member.Type()), memberPath, append(slices.Clone(within), named.Obj().Name()))
		if children == nil && !empty(member.Type()) {
			children = []field{{path: memberPath, readers: s.uses[keyOf(named, member)]}}
		}
		all = append(all, children...)
	}
	return all
}

// walkable reports whether a type is a struct of the API with its own fields.
func walkable(t types.Type) (*types.Named, bool) {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !slices.Contains(walked, named.Obj().Pkg().Path()) || slices.Contains(references, named.Obj().Name()) {
		return nil, false
	}
	structure, ok := named.Underlying().(*types.Struct)
	return named, ok && structure.NumFields() > 0
}

// empty reports whether a type is a struct without fields, such as a member of a union whose name is sufficient.
func empty(t types.Type) bool {
	structure, ok := elem(t).Underlying().(*types.Struct)
	return ok && structure.NumFields() == 0
}

// elem returns the element type of a pointer, list or map.
func elem(t types.Type) types.Type {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		return elem(u.Elem())
	case *types.Slice:
		return elem(u.Elem())
	case *types.Map:
		return elem(u.Elem())
	}
	return t
}

func suffix(t types.Type) string {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		return suffix(u.Elem())
	case *types.Slice:
		return "[]"
	case *types.Map:
		return "{}"
	}
	return ""
}

func join(path, tag string) string {
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return strings.Trim(path+"."+name, ".")
}
