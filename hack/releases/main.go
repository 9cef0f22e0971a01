// SPDX-License-Identifier: Apache-2.0

// Command releases works with the table of released versions, hack/releases.yaml. Run it in the root of the repository.
//
// Usage:
//
//	go run ./hack/releases verify              check the table against the changelog and the repository
//	go run ./hack/releases programs VERSION    build the programs of a release into the cache, and print their folder
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
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
	default:
		return errors.New("the command is not known; use verify or programs VERSION")
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
