// SPDX-License-Identifier: Apache-2.0

// Package table reads the table of released versions.
package table

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// Path is the file of the table, relative to the root of the repository.
const Path = "hack/releases.yaml"

// Release is a supported released version.
type Release struct {
	// Version is the number without a leading "v", such as 0.1.0.
	Version string `json:"version"`
	// Commit is the full hash of the commit that was released.
	Commit string `json:"commit"`
	// Day is the date of the release, such as 2026-11-26.
	Day string `json:"day"`
	// Kubernetes are the versions of the release payloads that the version was tested with, oldest first.
	Kubernetes []string `json:"kubernetes"`
}

// Table holds at least one release, oldest first.
type Table struct {
	Releases []Release `json:"releases"`
}

// Read reads and validates the table in a file, usually Path.
func Read(path string) (Table, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Table{}, fmt.Errorf("reading the table of releases: %w", err)
	}
	var table Table
	if err := yaml.UnmarshalStrict(data, &table); err != nil {
		return Table{}, fmt.Errorf("reading the table of releases %s: %w", path, err)
	}
	if err := table.validate(); err != nil {
		return Table{}, fmt.Errorf("reading the table of releases %s: %w", path, err)
	}
	return table, nil
}

// Last returns the newest release.
func (t Table) Last() Release {
	return t.Releases[len(t.Releases)-1]
}

// Find returns the release with the given version.
func (t Table) Find(version string) (Release, error) {
	var known []string
	for _, release := range t.Releases {
		if release.Version == version {
			return release, nil
		}
		known = append(known, release.Version)
	}
	return Release{}, fmt.Errorf("version %q is not in %s; choose one of %s", version, Path, strings.Join(known, ", "))
}

func (t Table) validate() error {
	if len(t.Releases) == 0 {
		return errors.New("it has no releases")
	}
	var failures []error
	previous := ""
	for _, release := range t.Releases {
		failures = append(failures, release.validate())
		if previous != "" && semver.Compare("v"+previous, "v"+release.Version) >= 0 {
			failures = append(failures, fmt.Errorf("release %s follows %s; order the releases from old to new",
				release.Version, previous))
		}
		previous = release.Version
	}
	return errors.Join(failures...)
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

func (r Release) validate() error {
	var failures []error
	fail := func(format string, arguments ...any) {
		failures = append(failures, fmt.Errorf("release %q: "+format, append([]any{r.Version}, arguments...)...))
	}
	if !isVersion(r.Version) {
		fail("the version is not MAJOR.MINOR.PATCH")
	}
	if !commitForm.MatchString(r.Commit) {
		fail("commit %q is not a full hash of 40 hexadecimal digits", r.Commit)
	}
	if _, err := time.Parse(time.DateOnly, r.Day); err != nil {
		fail("day %q is not YYYY-MM-DD", r.Day)
	}
	if len(r.Kubernetes) == 0 {
		fail("it names no Kubernetes version of a payload")
	}
	for i, version := range r.Kubernetes {
		switch {
		case !isVersion(version):
			fail("Kubernetes version %q is not MAJOR.MINOR.PATCH", version)
		case i > 0 && semver.Compare("v"+r.Kubernetes[i-1], "v"+version) >= 0:
			fail("Kubernetes version %s follows %s; order the versions from old to new", version, r.Kubernetes[i-1])
		}
	}
	return errors.Join(failures...)
}

// isVersion reports whether a text is a complete version, which semver.Canonical does not change.
func isVersion(text string) bool {
	version := "v" + text
	return semver.IsValid(version) && semver.Canonical(version) == version
}
