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
		"reports a lower version":          {"1.3.5", []string{low}},
		"accepts the lowest version":       {"1.3.6", nil},
		"accepts a later version with a v": {"v1.10.0", nil},
		"reports a prerelease of the lowest version": {"1.3.6-rc.1",
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

func TestBelowLines(t *testing.T) {
	table := lowestversions.Table{Servers: map[string]lowestversions.Lines{
		"maas": {Lowest: []string{"3.2.11", "3.4.4"}, Reason: "a hole", Advisories: "https://example.com"}}}
	low := func(version, better string) string {
		return "version " + version + " has a known vulnerability: a hole; upgrade to " + better + " or later, see https://example.com"
	}
	for name, tt := range map[string]struct{ version, want string }{
		"names the version that repairs the line":                   {"3.4.3", low("3.4.3", "3.4.4")},
		"accepts the version that repairs the line":                 {"3.4.4", ""},
		"accepts a later version of the line":                       {"3.2.12", ""},
		"names the next line for a version between two lines":       {"3.3.9", low("3.3.9", "3.4.4")},
		"names the oldest line for an older version":                {"2.9.2", low("2.9.2", "3.2.11")},
		"accepts a newer line":                                      {"3.7.0", ""},
		"accepts a newer major version":                             {"4.0.0", ""},
		"reports a prerelease of the version that repairs the line": {"3.4.4-rc1", low("3.4.4-rc1", "3.4.4")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := table.BelowLines("maas", tt.version)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	if _, err := table.BelowLines("maas", "new"); err == nil {
		t.Error("a version that cannot be compared is accepted")
	}
	if got, err := table.BelowLines("other", "0.1"); err != nil || got != "" {
		t.Errorf("a server without an entry: got %q, %v", got, err)
	}
}

// TestServers checks that each lowest version of the table can be compared, and that lines are in rising order.
func TestServers(t *testing.T) {
	table, err := lowestversions.Read()
	if err != nil {
		t.Fatal(err)
	}
	for name, entry := range table.Servers {
		if entry.Reason == "" || entry.Advisories == "" {
			t.Errorf("%s: %+v", name, entry)
		}
		for _, lowest := range entry.Lowest {
			if got, err := table.BelowLines(name, lowest); err != nil || got != "" {
				t.Errorf("%s %s: got %q, %v", name, lowest, got, err)
			}
			if got, err := table.BelowLines(name, lowest+"-rc1"); err != nil || got == "" {
				t.Errorf("%s %s-rc1: got %q, %v", name, lowest, got, err)
			}
		}
	}
}
