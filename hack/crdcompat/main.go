// SPDX-License-Identifier: Apache-2.0

// Command crdcompat compares the CRDs of this tree with those of the last release. It fails for each difference that
// can reject, lose or change an existing object, unless the deliberate changes of that release list it.
//
// The CRDs of a release are stored in hack/releases/VERSION/crds, without descriptions, next to the examples and the
// objects that its tests store. They are copies, so that the comparison also runs in a shallow clone and the tests need
// no git. `make verify-crds` compares them with the commit if the clone has it.
//
// Usage, in the root of the repository:
//
//	go run ./hack/crdcompat                  compare with the last release
//	go run ./hack/crdcompat -store VERSION   store the CRDs and objects of a release, from its commit
//	go run ./hack/crdcompat -stored          compare what is stored with the commits of the releases
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/hack/releases/table"
	"github.com/openshift/hypershift/support/crds"
)

const releasesFolder = "hack/releases"

func main() {
	store := flag.String("store", "", "store the CRDs and objects of the release of this version, from its commit")
	stored := flag.Bool("stored", false, "compare what is stored with the commits of the releases")
	flag.Parse()
	if err := run(context.Background(), *store, *stored); err != nil {
		fmt.Fprintln(os.Stderr, "crdcompat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, store string, stored bool) error {
	releases, err := table.Read(table.Path)
	if err != nil {
		return err
	}
	switch {
	case store != "":
		release, err := releases.Find(store)
		if err != nil {
			return err
		}
		return storeRelease(ctx, release)
	case stored:
		var failures []error
		for _, release := range releases.Releases {
			failures = append(failures, checkStored(ctx, release))
		}
		return errors.Join(failures...)
	default:
		return verify(releases.Last())
	}
}

// verify compares the CRDs of this tree with those of a release.
func verify(release table.Release) error {
	var changes []change
	for _, folder := range crds.Folders {
		before, err := readFolder(filepath.Join(crdFolder(release), folder))
		if err != nil {
			return err
		}
		after, err := crds.Load(folder)
		if err != nil {
			return err
		}
		changes = append(changes, compare(before, after)...)
	}
	path := filepath.Join(releasesFolder, release.Version, "crd-changes.yaml")
	entries, err := readDeliberate(path)
	if err != nil {
		return err
	}
	if err := judge(changes, entries); err != nil {
		return fmt.Errorf("comparing the CRDs with those of %s:\n%w\n"+
			"keep what users have, or name the change in %s with its reason",
			release.Version, err, path)
	}
	fmt.Printf("%d changes of the CRDs since %s are deliberate\n", len(changes), release.Version)
	return nil
}
