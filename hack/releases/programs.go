// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/hypershift/hack/releases/table"
)

// cacheFolder returns the folder that all clones share, as hack/cached chooses it.
func cacheFolder() (string, error) {
	cache := os.Getenv("HYPERSHIFT_CACHE")
	if cache == "off" {
		return "", errors.New("HYPERSHIFT_CACHE is off, but the cache keeps the programs of a release; name a folder")
	}
	if cache != "" {
		return filepath.Abs(cache)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w; name one with HYPERSHIFT_CACHE", err)
	}
	return filepath.Join(user, "hypershift-maas"), nil
}

// programs builds the programs of a release, unless they are in the cache, and returns their folder.
func programs(ctx context.Context, repository, cache string, release table.Release) (string, error) {
	folder := filepath.Join(cache, "releases", release.Version)
	target := filepath.Join(folder, "bin")
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if err := hasCommit(ctx, repository, release); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder of release %s: %w", release.Version, err)
	}
	work, err := os.MkdirTemp(folder, ".new-")
	if err != nil {
		return "", fmt.Errorf("making the cache folder of release %s: %w", release.Version, err)
	}
	defer os.RemoveAll(work)
	source := filepath.Join(work, "source")
	if err := build(ctx, repository, source, release); err != nil {
		return "", fmt.Errorf("building the programs of release %s: %w", release.Version, err)
	}
	// Another clone may have built the same programs.
	if err := os.Rename(filepath.Join(source, "bin"), target); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("keeping the programs of release %s: %w", release.Version, err)
	}
	return target, nil
}

// errNoCommit is the error of a clone that lacks the commit of a release.
var errNoCommit = errors.New("this clone lacks commit")

// hasCommit returns an error with the remedy if the clone lacks the commit of a release.
func hasCommit(ctx context.Context, repository string, release table.Release) error {
	if _, err := git(ctx, repository, "cat-file", "-e", release.Commit+"^{commit}"); err == nil {
		return nil
	}
	shallow, err := isShallow(ctx, repository)
	if err != nil {
		return err
	}
	remedy := "git fetch"
	if shallow {
		remedy = "git fetch --unshallow"
	}
	return fmt.Errorf("%w %.8s of release %s; run `%s`", errNoCommit, release.Commit, release.Version, remedy)
}

func isShallow(ctx context.Context, repository string) (bool, error) {
	out, err := git(ctx, repository, "rev-parse", "--is-shallow-repository")
	return strings.TrimSpace(out) == "true", err
}

// build checks out a release and runs its own `make build`. The repository registers the worktree; build removes the
// registration at the end.
func build(ctx context.Context, repository, source string, release table.Release) (err error) {
	if _, err := git(ctx, repository, "worktree", "add", "--detach", source, release.Commit); err != nil {
		return err
	}
	defer func() {
		// The programs are moved out of the worktree later: only the registration is removed here.
		err = errors.Join(err, unregister(context.WithoutCancel(ctx), repository, source))
	}()
	fmt.Fprintf(os.Stderr, "Building the programs of release %s; this takes some minutes.\n", release.Version)
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", source, "build", "VERSION=v"+release.Version)
	cmd.Env = buildEnvironment(os.Environ())
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}

// unregister removes the link of a worktree to the repository, and so its entry there.
func unregister(ctx context.Context, repository, source string) error {
	if err := os.Remove(filepath.Join(source, ".git")); err != nil {
		return err
	}
	_, err := git(ctx, repository, "worktree", "prune")
	return err
}

// ofThisMake lists variables that a calling make exports to its targets and child processes.
var ofThisMake = []string{
	"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKEFILE_LIST", "BIN", "GOBIN", "VERSION", "GOTOOLCHAIN",
}

// buildEnvironment removes the variables of a calling make. The Go toolchain of this program builds the release:
// differences between two versions then come only from their sources, and both share Go's build cache.
func buildEnvironment(environment []string) []string {
	kept := slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(ofThisMake, name)
	})
	toolchain, _, _ := strings.Cut(runtime.Version(), " ")
	return append(kept, "GOTOOLCHAIN="+toolchain)
}

func git(ctx context.Context, repository string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", repository}, arguments...)...)
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}
