// SPDX-License-Identifier: Apache-2.0

package upsert

import (
	"testing"

	. "github.com/onsi/gomega"
)

type object = map[string]any

type list = []any

func TestCovers(t *testing.T) {
	cases := []struct {
		name         string
		live, wanted any
		want         bool
	}{
		{"both are equal", object{"a": "b"}, object{"a": "b"}, true},
		{"the server has added fields", object{"a": "b", "uid": "1"}, object{"a": "b"}, true},
		{"a field differs", object{"a": "c"}, object{"a": "b"}, false},
		{"a field is missing", object{}, object{"a": "b"}, false},
		{"there is no object", nil, object{"a": "b"}, false},
		{"a field has another type", object{"a": object{}}, object{"a": "b"}, false},
		{"a nested field differs", object{"a": object{"b": int64(1)}}, object{"a": object{"b": int64(2)}}, false},
		{"an empty string is omitted", object{}, object{"a": ""}, true},
		{"an empty string is desired but the field has a value", object{"a": "x"}, object{"a": ""}, false},
		{"a zero is omitted", object{}, object{"a": int64(0)}, true},
		{"a false value is omitted", object{}, object{"a": false}, true},
		{"a true value is omitted", object{}, object{"a": true}, false},
		{"an empty block is omitted", object{}, object{"strategy": object{}}, true},
		{"an empty block was filled in by the server", object{"strategy": object{"type": "x"}}, object{"strategy": object{}}, true},
		{"lists are the same", object{"a": list{"x", "y"}}, object{"a": list{"x", "y"}}, true},
		{"a list has a different order", object{"a": list{"y", "x"}}, object{"a": list{"x", "y"}}, false},
		{"a list is longer", object{"a": list{"x", "y"}}, object{"a": list{"x"}}, false},
		{"a list is missing", object{}, object{"a": list{"x"}}, false},
		{"an empty list is omitted", object{}, object{"a": list{}}, true},
		{"a user added a named item", object{"a": list{object{"name": "y"}, object{"name": "x"}}}, object{"a": list{object{"name": "x"}}}, true},
		{"a named item differs", object{"a": list{object{"name": "x", "v": "1"}}}, object{"a": list{object{"name": "x", "v": "2"}}}, false},
		{"a named item is missing", object{"a": list{object{"name": "y"}}}, object{"a": list{object{"name": "x"}}}, false},
		{"a user added a finalizer", object{"finalizers": list{"theirs", "ours"}}, object{"finalizers": list{"ours"}}, true},
		{"a finalizer is missing", object{"finalizers": list{"theirs"}}, object{"finalizers": list{"ours"}}, false},
		{"items have no name and one was filled in", object{"a": list{object{"p": int64(1), "d": "x"}}}, object{"a": list{object{"p": int64(1)}}}, true},
		{"names repeat and items are the same", object{"a": list{object{"name": "x", "v": "1"}, object{"name": "x", "v": "2"}}},
			object{"a": list{object{"name": "x", "v": "1"}, object{"name": "x", "v": "2"}}}, true},
	}
	for _, tc := range cases {
		t.Run("When "+tc.name+" it should report if the live object has all desired fields", func(t *testing.T) {
			NewWithT(t).Expect(covers(tc.live, tc.wanted)).To(Equal(tc.want))
		})
	}
}
