// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/openshift/hypershift/hack/releases/table"
)

// verify checks that the changelog lists each release with its date and what to do for an upgrade, and that the
// repository has each commit. It skips the commits in a shallow clone.
func verify(ctx context.Context, repository string, releases table.Table) error {
	changelog, err := os.ReadFile(filepath.Join(repository, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	shallow, err := isShallow(ctx, repository)
	if err != nil {
		return err
	}
	var failures []error
	for _, release := range releases.Releases {
		heading := fmt.Sprintf("## [%s] - %s", release.Version, release.Day)
		_, section, found := strings.Cut(string(changelog), "\n"+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found {
			failures = append(failures, fmt.Errorf("release %s of %s: CHANGELOG.md has no heading %q",
				release.Version, table.Path, heading))
		} else if !strings.Contains(section, "\n### Upgrading\n") {
			failures = append(failures, fmt.Errorf("release %s of %s: CHANGELOG.md has no heading \"### Upgrading\" below %q",
				release.Version, table.Path, heading))
		}
		if !shallow {
			failures = append(failures, hasCommit(ctx, repository, release))
		}
	}
	return errors.Join(failures...)
}
