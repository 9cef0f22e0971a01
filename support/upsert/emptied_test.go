// SPDX-License-Identifier: Apache-2.0

package upsert

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDropEmptied(t *testing.T) {
	type fields = map[string]any
	for name, tc := range map[string]struct {
		wanted fields
		have   any
		want   fields
	}{
		"When a nested object loses its last field, it should be dropped": {
			fields{"a": fields{}, "b": "x"}, fields{"a": fields{"c": "y"}, "b": "x"}, fields{"b": "x"}},
		"When the parent has no other field, the parent should be dropped too": {
			fields{"a": fields{"b": fields{}}, "c": "x"}, fields{"a": fields{"b": fields{"d": "y"}}}, fields{"c": "x"}},
		"When the parent has another field, the parent should be kept": {
			fields{"a": fields{"b": fields{}, "c": "x"}}, fields{"a": fields{"b": fields{"d": "y"}}}, fields{"a": fields{"c": "x"}}},
		"When a nested object was already empty, it should be kept": {
			fields{"a": fields{}}, fields{"a": fields{}}, nil},
		"When an empty nested object is new, it should be kept": {
			fields{"a": fields{}}, fields{"b": "x"}, nil},
		"When the object does not exist yet, everything should be kept": {
			fields{"a": fields{"b": fields{}}}, nil, nil},
		"When fields are removed and one remains, nothing should be dropped": {
			fields{"a": fields{"b": "x"}}, fields{"a": fields{"b": "x", "c": "y"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(tc.wanted)
			if dropped := dropEmptied(tc.wanted, tc.have); dropped != (tc.want != nil) {
				t.Errorf("dropped: %t", dropped)
			}
			if tc.want == nil {
				if fmt.Sprint(tc.wanted) != before {
					t.Errorf("changed to %v", tc.wanted)
				}
				return
			}
			if diff := cmp.Diff(tc.want, tc.wanted); diff != "" {
				t.Error("-want +got\n" + diff)
			}
		})
	}
}
