// SPDX-License-Identifier: Apache-2.0

// Command releases works with the table of released versions, hack/releases.yaml. Run it in the root of the repository.
//
// Usage:
//
//	go run ./hack/releases verify              check the table against the changelog and the repository
//	go run ./hack/releases programs VERSION    build the programs of a release into the cache, and print their folder
//	go run ./hack/releases last FOLDER         link the programs of the last release into FOLDER/VERSION; a clone that
//	                                           lacks its commit gets a notice, and no folder
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/openshift/hypershift/hack/releases/table"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	releases, err := table.Read(table.Path)
	if err != nil {
		return err
	}
	switch {
	case len(arguments) == 1 && arguments[0] == "verify":
		return verify(ctx, ".", releases)
	case len(arguments) == 2 && arguments[0] == "programs":
		return printPrograms(ctx, releases, arguments[1])
	case len(arguments) == 2 && arguments[0] == "last":
		cache, err := cacheFolder()
		if err != nil {
			return err
		}
		return linkLast(ctx, ".", cache, releases, arguments[1])
	default:
		return errors.New("the command is not known; use verify, programs VERSION or last FOLDER")
	}
}

func printPrograms(ctx context.Context, releases table.Table, version string) error {
	release, err := releases.Find(version)
	if err != nil {
		return err
	}
	cache, err := cacheFolder()
	if err != nil {
		return err
	}
	folder, err := programs(ctx, ".", cache, release)
	if err != nil {
		return err
	}
	fmt.Println(folder)
	return nil
}

// linkLast links the programs of the last release to FOLDER/VERSION, and removes other releases from FOLDER.
func linkLast(ctx context.Context, repository, cache string, releases table.Table, folder string) error {
	release := releases.Releases[len(releases.Releases)-1]
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	built, err := programs(ctx, repository, cache, release)
	if errors.Is(err, errNoCommit) {
		fmt.Fprintf(os.Stderr, "releases: upgrades from the last release are not tested: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.Symlink(built, filepath.Join(folder, release.Version))
}
