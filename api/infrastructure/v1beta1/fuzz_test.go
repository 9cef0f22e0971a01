// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// FuzzFailureDomains reads a list of zones in both forms that were ever stored. What is read is written as a list that reads as the same; that of
// a map has each name once, in order.
func FuzzFailureDomains(f *testing.F) {
	for _, text := range []string{
		`[{"name":"b"},{"name":"a","controlPlane":true}]`, `{"b":{"controlPlane":true},"a":{"attributes":{"rack":"1"}}}`, `{"a":{"name":"b"}}`,
		`{"a":{},"a":{}}`, `{}`, `[]`, `null`, `"rack-1"`, `[{"name":1}]`, `{"":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var first, second FailureDomains
		if json.Unmarshal(raw, &first) != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%s is read, and cannot be written: %v", raw, err)
		}
		if err := json.Unmarshal(written, &second); err != nil {
			t.Fatalf("%s is written as %s, which cannot be read: %v", raw, written, err)
		}
		again, err := json.Marshal(second)
		if err != nil || !reflect.DeepEqual(again, written) {
			t.Errorf("%s is written as %s, and after reading that as %s: %v", raw, written, again, err)
		}
		var byName map[string]json.RawMessage
		if json.Unmarshal(raw, &byName) == nil && len(byName) > 0 {
			names := make([]string, 0, len(first))
			for _, domain := range first {
				names = append(names, domain.Name)
			}
			if len(names) != len(byName) || !slices.IsSorted(names) {
				t.Errorf("the map %s is read as %q", raw, names)
			}
		}
	})
}
