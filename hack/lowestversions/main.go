// SPDX-License-Identifier: Apache-2.0

// Command lowestversions fails if a version is below the table of support/lowestversions and thus has a known
// vulnerability. It checks each go.mod in its arguments, and the defaults of `hypershift release build`.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/openshift/hypershift/cmd/release/published"
	"github.com/openshift/hypershift/support/lowestversions"
)

func main() {
	if err := check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(files []string) error {
	table, err := lowestversions.Read()
	if err != nil {
		return err
	}
	failures := []error{checkDefaults(table)}
	for _, file := range files {
		versions, err := required(file)
		failures = append(failures, err, below(file, table.Modules, versions))
	}
	return errors.Join(failures...)
}

// required returns the modules of a go.mod with their versions, and the toolchain as "go".
func required(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := modfile.Parse(file, content, nil)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, module := range parsed.Require {
		versions[module.Mod.Path] = module.Mod.Version
	}
	if parsed.Go != nil {
		versions["go"] = parsed.Go.Version
	}
	if parsed.Toolchain != nil {
		versions["go"] = strings.TrimPrefix(parsed.Toolchain.Name, "go")
	}
	return versions, nil
}

// checkDefaults checks the defaults of all supported minors.
func checkDefaults(table lowestversions.Table) error {
	var failures []error
	for _, version := range published.Minors() {
		release, err := published.Of(version, nil)
		where := "release build --kubernetes " + version
		failures = append(failures, err, below(where, table.Components, release.Versions))
	}
	return errors.Join(failures...)
}

func below(where string, entries map[string]lowestversions.Entry, versions map[string]string) error {
	low, err := lowestversions.Below(entries, versions)
	failures := []error{err}
	for _, what := range low {
		failures = append(failures, errors.New(what))
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}
