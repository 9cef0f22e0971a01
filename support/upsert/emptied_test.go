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
		"When a structure loses its last field, it should be left out": {
			fields{"a": fields{}, "b": "x"}, fields{"a": fields{"c": "y"}, "b": "x"}, fields{"b": "x"}},
		"When that was all that its parent had, the parent should go too": {
			fields{"a": fields{"b": fields{}}, "c": "x"}, fields{"a": fields{"b": fields{"d": "y"}}}, fields{"c": "x"}},
		"When its parent has something else, the parent should stay": {
			fields{"a": fields{"b": fields{}, "c": "x"}}, fields{"a": fields{"b": fields{"d": "y"}}}, fields{"a": fields{"c": "x"}}},
		"When a structure was empty before, it should stay": {
			fields{"a": fields{}}, fields{"a": fields{}}, nil},
		"When a structure is new, it should stay": {
			fields{"a": fields{}}, fields{"b": "x"}, nil},
		"When there is no object yet, all should stay": {
			fields{"a": fields{"b": fields{}}}, nil, nil},
		"When fields go and one stays, nothing should be left out": {
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
