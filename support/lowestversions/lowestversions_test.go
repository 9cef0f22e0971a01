// SPDX-License-Identifier: Apache-2.0

package lowestversions_test

import (
	"slices"
	"testing"

	"github.com/openshift/hypershift/support/lowestversions"
)

func TestBelow(t *testing.T) {
	entries := map[string]lowestversions.Entry{"runc": {Lowest: "1.3.6", Reason: "holes",
		Advisories: "https://example.com"}}
	const low = "runc 1.3.5: holes; use 1.3.6 or later, see https://example.com"
	for name, tt := range map[string]struct {
		version string
		want    []string
	}{
		"tells a lower version":            {"1.3.5", []string{low}},
		"accepts the lowest version":       {"1.3.6", nil},
		"accepts a later version with a v": {"v1.10.0", nil},
		"tells a prerelease of the lowest version": {"1.3.6-rc.1",
			[]string{"runc 1.3.6-rc.1: holes; use 1.3.6 or later, see https://example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lowestversions.Below(entries, map[string]string{"runc": tt.version, "other": "0.1"})
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := lowestversions.Below(entries, map[string]string{"runc": "new"}); err == nil {
		t.Error("a version that cannot be compared is accepted")
	}
}

// TestTable checks that all versions of the table can be compared, and that all entries have a reason.
func TestTable(t *testing.T) {
	table, err := lowestversions.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, entries := range []map[string]lowestversions.Entry{table.Components, table.Modules} {
		for name, entry := range entries {
			low, err := lowestversions.Below(entries, map[string]string{name: "0.0.1"})
			if err != nil || len(low) != 1 || entry.Reason == "" || entry.Advisories == "" {
				t.Errorf("%s: %+v, %v", name, entry, err)
			}
		}
	}
}
