// SPDX-License-Identifier: Apache-2.0

// Package lowestversions lists, for each component that the product ships or depends on, the lowest version without a
// known vulnerability.
package lowestversions

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

//go:embed versions.yaml
var text []byte

// Entry is the lowest version of one component or module.
type Entry struct {
	// Lowest is a semantic version without a leading v.
	Lowest string `json:"lowest"`
	// Reason describes the problem of lower versions.
	Reason string `json:"reason"`
	// Advisories is a URL with details.
	Advisories string `json:"advisories"`
}

// Lines are the lowest versions of a server that is maintained in several lines, such as 3.4 and 3.5.
type Lines struct {
	// Lowest are semantic versions without a leading v, one for each line, in rising order.
	Lowest []string `json:"lowest"`
	// Reason describes the problem of lower versions.
	Reason string `json:"reason"`
	// Advisories is a URL with details.
	Advisories string `json:"advisories"`
}

// Table holds the lowest versions.
type Table struct {
	// Components are the parts of a release payload, by name.
	Components map[string]Entry `json:"components"`
	// Servers are programs that users run beside the product, by name.
	Servers map[string]Lines `json:"servers"`
	// Modules are Go modules by path, and the toolchain as "go".
	Modules map[string]Entry `json:"modules"`
}

// Read returns the table that is embedded in this program.
func Read() (Table, error) {
	table := Table{}
	if err := yaml.UnmarshalStrict(text, &table); err != nil {
		return table, fmt.Errorf("reading the table of lowest versions: %w", err)
	}
	return table, nil
}

// Below describes each of versions, sorted by name, that is lower than the entry of the same name. It ignores names
// without an entry. It returns an error for a version that is not a semantic version.
func Below(entries map[string]Entry, versions map[string]string) ([]string, error) {
	var low []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		entry, ok := entries[name]
		if !ok {
			continue
		}
		lowest, err := semver.Parse(entry.Lowest)
		if err != nil {
			return nil, fmt.Errorf("the table of lowest versions has the invalid version %q for %s: %w", entry.Lowest, name, err)
		}
		version, err := semver.ParseTolerant(versions[name])
		if err != nil {
			return nil, fmt.Errorf("version %q of %s: %w", versions[name], name, err)
		}
		if version.LT(lowest) {
			low = append(low, fmt.Sprintf("%s %s: %s; use %s or later, see %s",
				name, versions[name], entry.Reason, entry.Lowest, entry.Advisories))
		}
	}
	return low, nil
}

// BelowLines describes a version of a server that is lower than the lowest one of its line, or than all lines. It
// returns "" for other versions, and for a server without an entry. It returns an error for a version that is not a
// semantic version.
func (t Table) BelowLines(server, text string) (string, error) {
	entry, ok := t.Servers[server]
	if !ok {
		return "", nil
	}
	version, err := semver.ParseTolerant(text)
	if err != nil {
		return "", fmt.Errorf("version %q of %s: %w", text, server, err)
	}
	for _, line := range entry.Lowest {
		lowest, err := semver.Parse(line)
		if err != nil {
			return "", fmt.Errorf("the table of lowest versions has the invalid version %q for %s: %w", line, server, err)
		}
		if version.LT(lowest) {
			return fmt.Sprintf("version %s has a known vulnerability: %s; upgrade to %s or later, see %s",
				text, entry.Reason, line, entry.Advisories), nil
		}
		if version.Major == lowest.Major && version.Minor == lowest.Minor {
			return "", nil
		}
	}
	return "", nil
}
