// SPDX-License-Identifier: Apache-2.0

// Command frozen compares values that machines and nodes of running clusters depend on with the last release. Such
// values cause a rollout of a NodePool, or are user-data, what node-agent reads, subjects of certificates, or names
// and ports of Services. The values come from golden files, which tests compare with the programs. A value that
// differs needs an entry in hack/releases/VERSION/frozen-changes.yaml, with the reason and how running pools migrate.
//
// Usage, in the root of the repository:
//
//	go run ./hack/frozen                           check
//	go run ./hack/frozen -store VERSION -tree DIR  store the values of a release, whose golden files are in DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/hack/releases/glob"
	"github.com/openshift/hypershift/hack/releases/table"
)

func main() {
	store := flag.String("store", "", "store the values of the release of this version")
	tree := flag.String("tree", ".", "folder with the files of that release")
	flag.Parse()
	if err := run(*store, *tree); err != nil {
		fmt.Fprintln(os.Stderr, "frozen:", err)
		os.Exit(1)
	}
}

func run(store, tree string) error {
	releases, err := table.Read(table.Path)
	if err != nil {
		return err
	}
	values, err := collect(tree)
	if err != nil {
		return err
	}
	if store == "" {
		return check(releases.Last(), values)
	}
	release, err := releases.Find(store)
	if err != nil {
		return err
	}
	return os.WriteFile(pathOf(release, "frozen.yaml"), []byte(text(release, values)), 0o644)
}

func pathOf(release table.Release, name string) string {
	return filepath.Join("hack", "releases", release.Version, name)
}

// text writes the values, one per line, in the order of their keys.
func text(release table.Release, values map[string]string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# What running clusters of %s depend on; do not edit.\n"+
		"# `go run ./hack/frozen -store %s -tree DIR` writes it.\n",
		release.Version, release.Version)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&out, "%s: %q\n", key, values[key])
	}
	return out.String()
}

// entry is a deliberate change. A "*" in Key stands for any text.
type entry struct {
	Key string `json:"key"`
	// Reason is why the value changes.
	Reason string `json:"reason"`
	// Carried describes how running clusters migrate: what keeps the old value, until when, and that no machine is
	// replaced.
	Carried string `json:"carried"`
}

func check(release table.Release, now map[string]string) error {
	before := map[string]string{}
	if err := read(pathOf(release, "frozen.yaml"), &before); err != nil {
		return err
	}
	var list struct {
		Changes []entry `json:"changes"`
	}
	path := pathOf(release, "frozen-changes.yaml")
	if err := read(path, &list); err != nil {
		return err
	}
	if err := judge(before, now, list.Changes); err != nil {
		return fmt.Errorf("comparing what running clusters of %s depend on:\n%w\n"+
			"keep the value, or name it in %s with the reason and how running pools are carried over", release.Version, err,
			path)
	}
	return nil
}

func read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// judge returns an error that names each value that changed without an entry, and each entry without such a value.
func judge(before, now map[string]string, entries []entry) error {
	var failures []error
	used := make([]bool, len(entries))
	for _, key := range slices.Sorted(maps.Keys(before)) {
		current, ok := now[key]
		if ok && current == before[key] {
			continue
		}
		named := false
		for i, e := range entries {
			if glob.Matches(e.Key, key) && e.Key != "" {
				used[i], named = true, true
			}
		}
		if !named {
			failures = append(failures, fmt.Errorf("  %s was %q and is %q", key, before[key], current))
		}
	}
	for i, e := range entries {
		switch {
		case e.Key == "" || e.Reason == "" || e.Carried == "":
			failures = append(failures, fmt.Errorf("  deliberate change %q needs key, reason and carried", e.Key))
		case !used[i]:
			failures = append(failures, fmt.Errorf("  deliberate change %q names no value that changed; remove it", e.Key))
		}
	}
	return errors.Join(failures...)
}
