// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/hack/releases/glob"
)

// entry is a deliberate change. A "*" in CRD, Path and Detail stands for any text.
type entry struct {
	// Reason explains the change, and its consequences for users.
	Reason string `json:"reason"`
	// Change is the kind of the change.
	Change string `json:"change"`
	// CRD and Path restrict the entry; empty matches everything.
	CRD  string `json:"crd,omitempty"`
	Path string `json:"path,omitempty"`
	// Detail restricts the entry; empty matches all changes of that kind.
	Detail string `json:"detail,omitempty"`
}

func (e entry) String() string {
	return strings.Join(strings.Fields(strings.Join([]string{e.CRD, e.Path, e.Change, e.Detail}, " ")), " ")
}

func (e entry) matches(c change) bool {
	return e.Change == c.Kind && glob.Matches(e.CRD, c.CRD) && glob.Matches(e.Path, c.Path) && glob.Matches(e.Detail,
		c.Detail)
}

// readDeliberate reads the deliberate changes since a release; there are none if the file does not exist.
func readDeliberate(path string) ([]entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Changes []entry `json:"changes"`
	}
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	for _, entry := range list.Changes {
		if entry.Reason == "" || entry.Change == "" {
			return nil, fmt.Errorf("reading %s: entry %q has no reason or no change", path, entry)
		}
	}
	return list.Changes, nil
}

// judge returns an error that names each change without an entry and each entry without a change.
func judge(changes []change, entries []entry) error {
	var failures []error
	used := make([]bool, len(entries))
	for _, c := range changes {
		named := false
		for i, e := range entries {
			if e.matches(c) {
				used[i], named = true, true
			}
		}
		if !named {
			failures = append(failures, fmt.Errorf("  %s", c))
		}
	}
	slices.SortFunc(failures, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	for i, e := range entries {
		if !used[i] {
			failures = append(failures, fmt.Errorf("  deliberate change %q matches nothing; remove it", e))
		}
	}
	return errors.Join(failures...)
}
