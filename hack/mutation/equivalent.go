// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// equivalent is a change that no test can catch, since it has no visible effect.
type equivalent struct {
	// File is the path of the changed file, relative to the module's folder.
	File string `json:"file"`
	// Change is the change, in the form that is printed for a survivor.
	Change string `json:"change"`
	Reason string `json:"reason"`
}

// readEquivalents reads the list. If the file does not exist, the list is empty.
func readEquivalents(path string) ([]equivalent, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the equivalent changes: %w", err)
	}
	var known []equivalent
	if err := yaml.UnmarshalStrict(text, &known); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, e := range known {
		if e.Reason == "" {
			return nil, fmt.Errorf("%s: %s: %q has no reason: say why the change is not observable", path, e.File, e.Change)
		}
	}
	return known, nil
}

// matching returns the package's changes that are on the list, and an error for an entry that matches none of them.
func matching(known []equivalent, p *sourcePackage) (map[int]bool, error) {
	same := map[int]bool{}
	for _, e := range known {
		if filepath.Join(p.Module.Path, filepath.Dir(e.File)) != p.ImportPath {
			continue
		}
		found := false
		for _, m := range p.mutants {
			if m.file == filepath.Base(e.File) && m.change == e.Change {
				same[m.id], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("the list of equivalent changes names one that is no longer there: %s: %q", e.File, e.Change)
		}
	}
	return same, nil
}
