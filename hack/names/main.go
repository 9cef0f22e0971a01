// SPDX-License-Identifier: Apache-2.0

// Command names lists the names that users depend on: conditions, reasons, annotations, labels, events, metrics, flags,
// exit codes and fields of JSON output. It writes them to docs/reference/names.md. Without -write it fails if that page
// is stale. It also fails if a name of the last release is gone and the changelog does not list it under "Removed" or
// "Deprecated".
//
// Usage, in the root of the repository:
//
//	go run ./hack/names                          check
//	go run ./hack/names -write                   write the page
//	go run ./hack/names -store VERSION -tree DIR store the names of a release, whose files are in DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/hack/releases/table"
)

const (
	page      = "docs/reference/names.md"
	changelog = "CHANGELOG.md"
)

func main() {
	write := flag.Bool("write", false, "write the page of names")
	store := flag.String("store", "", "store the names of the release of this version")
	tree := flag.String("tree", ".", "folder with the files of that release")
	flag.Parse()
	if err := run(*write, *store, *tree); err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}

func run(write bool, store, tree string) error {
	releases, err := table.Read(table.Path)
	if err != nil {
		return err
	}
	names, err := collect(tree)
	if err != nil {
		return err
	}
	switch {
	case store != "":
		release, err := releases.Find(store)
		if err != nil {
			return err
		}
		return os.WriteFile(storePath(release), []byte(list(names)), 0o644)
	case write:
		return os.WriteFile(page, []byte(render(names)), 0o644)
	default:
		return check(releases.Last(), names)
	}
}

// storePath returns the file with the names of a release, one per line.
func storePath(release table.Release) string {
	return filepath.Join("hack", "releases", release.Version, "names.txt")
}

func check(release table.Release, names []name) error {
	var failures []error
	now, err := os.ReadFile(page)
	if err != nil || string(now) != render(names) {
		failures = append(failures, fmt.Errorf("%s is stale; run `make names` and commit it", page))
	}
	before, err := os.ReadFile(storePath(release))
	if err != nil {
		return errors.Join(append(failures, fmt.Errorf("reading the names of release %s: %w", release.Version, err))...)
	}
	news, err := os.ReadFile(changelog)
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	for _, lost := range unannounced(parseList(string(before)), names, announced(string(news), release.Version)) {
		failures = append(failures, fmt.Errorf(
			"%s %q of %s is gone; keep it, or name it under \"Removed\" or \"Deprecated\" of %s",
			lost.kind, lost.text, release.Version, changelog))
	}
	return errors.Join(failures...)
}
