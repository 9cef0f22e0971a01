// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/nodeinput"
)

// defaultPoolHash is the configuration hash of a pool with default settings. Machines of every installation have it, so
// an operator that computes a different hash reinstalls all of them. Change it only if that is intended, and mention it
// in the release notes.
const defaultPoolHash = "03b9bb09"

func TestDefaultPoolHash(t *testing.T) {
	hash, _ := hashes(t, func(s *reconciliation) { s.config.Raw = "" })
	NewWithT(t).Expect(hash).To(Equal(defaultPoolHash))
}

// TestHashIsOverTheTable changes every field of a HostedCluster, one at a time. The hash must depend exactly on the
// fields in the table of inputs.
func TestHashIsOverTheTable(t *testing.T) {
	base := func() *hyperv1.HostedCluster {
		hc := fixture.HostedCluster("clusters")
		hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://base"}}
		return hc
	}
	hashOf := func(hc *hyperv1.HostedCluster) string {
		hash, _ := hashes(t, func(s *reconciliation) { s.HC = hc })
		return hash
	}
	unchanged, visited := hashOf(base()), map[string]bool{}
	walk(reflect.TypeFor[hyperv1.HostedClusterSpec](), "spec", nil, func(path string, steps []int) {
		hc := base()
		before, _ := json.Marshal(hc)
		change(reflect.ValueOf(&hc.Spec).Elem(), steps)
		if after, _ := json.Marshal(hc); string(after) == string(before) {
			t.Errorf("%s: the test could not change it", path)
		}
		row, known := rowOf("HostedCluster " + path)
		visited[row.Field] = true
		rolls := hashOf(hc) != unchanged
		if rolls && (!known || row.Effect == nodeinput.NewMachines || row.Effect == nodeinput.Nothing) {
			t.Errorf("%s replaces every machine, and the table of inputs does not say so", path)
		}
		if !rolls && row.Effect == nodeinput.ReplacesMachines {
			t.Errorf("%s replaces no machine, and the table of inputs says so", path)
		}
		if !known && (strings.HasPrefix(path, "spec.configuration.proxy.") || strings.HasPrefix(path, "spec.configuration.image.")) {
			t.Errorf("%s is not in the table of inputs: say there what it does to nodes", path)
		}
	})
	for _, in := range nodeinput.Inputs {
		if strings.HasPrefix(in.Field, "HostedCluster ") && !visited[in.Field] {
			t.Errorf("the table of inputs names %s, which is no field", in.Field)
		}
	}
}

// rowOf returns the row of a field, or of a field that contains it.
func rowOf(field string) (nodeinput.Input, bool) {
	for _, in := range nodeinput.Inputs {
		if field == in.Field || strings.HasPrefix(field, in.Field+".") {
			return in, true
		}
	}
	return nodeinput.Input{}, false
}

// walk visits the leaf fields of a type; steps are their indices, through pointers and into lists.
func walk(t reflect.Type, path string, steps []int, visit func(path string, steps []int)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && holdsFields(t.Elem()) {
		t = t.Elem()
	}
	if !holdsFields(t) {
		visit(path, steps)
		return
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		below := path
		if name != "" {
			below += "." + name
		}
		walk(field.Type, below, append(append([]int{}, steps...), i), visit)
	}
}

// holdsFields reports whether users set a struct field by field. Other structs are written as text.
func holdsFields(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	marshals := reflect.TypeFor[json.Marshaler]()
	return t.Kind() == reflect.Struct && !t.Implements(marshals) && !reflect.PointerTo(t).Implements(marshals)
}

// change sets the field at the end of steps to a different value.
func change(v reflect.Value, steps []int) {
	v = enter(v, len(steps) > 0)
	if len(steps) > 0 {
		change(v.Field(steps[0]), steps[1:])
		return
	}
	other := valueOf(v.Type())
	if reflect.DeepEqual(other.Interface(), v.Interface()) {
		other = reflect.Zero(v.Type())
	}
	v.Set(other)
}

// enter follows pointers, and lists whose items are structs with fields.
func enter(v reflect.Value, more bool) reflect.Value {
	for {
		switch {
		case v.Kind() == reflect.Pointer:
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		case more && v.Kind() == reflect.Slice:
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			}
			v = v.Index(0)
		default:
			return v
		}
	}
}

// valueOf returns a nonzero value.
func valueOf(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Slice:
		v = reflect.Append(v, valueOf(t.Elem()))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(valueOf(t.Key()), valueOf(t.Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(valueOf(t.Elem()))
	case reflect.Struct:
		v = valueOfText(v)
	}
	return v
}

// valueOfText returns a value of a struct that is written as text, from the first text that it can parse.
func valueOfText(v reflect.Value) reflect.Value {
	if v.Type() == reflect.TypeFor[ipnet.IPNet]() {
		v.Set(reflect.ValueOf(*ipnet.MustParseCIDR("192.0.2.0/24")))
		return v
	}
	for _, text := range []string{`"7m"`, `"2026-01-01T00:00:00Z"`, `"7Gi"`, `{"a":"b"}`} {
		if json.Unmarshal([]byte(text), v.Addr().Interface()) == nil {
			return v
		}
	}
	return v
}
