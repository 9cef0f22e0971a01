// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/openshift/hypershift/support/lowestversions"
)

// warn lists parts with known vulnerabilities. It is only a warning: a user may have to rebuild an old release.
func warn(out io.Writer, versions map[string]string) {
	table, err := lowestversions.Read()
	if err != nil {
		fmt.Fprintln(out, "Warning:", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		// Each version is compared separately, so that one that cannot be parsed hides no other.
		low, err := lowestversions.Below(table.Components, map[string]string{name: versions[name]})
		if err != nil {
			fmt.Fprintln(out, "Warning: cannot check for known vulnerabilities:", err)
		}
		for _, what := range low {
			fmt.Fprintln(out, "Warning:", what)
		}
	}
}
