// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/openshift/hypershift/support/lowestversions"
)

// warn tells of parts with known holes. It stops nothing: a user may have to build an old release again.
func warn(out io.Writer, versions map[string]string) {
	table, err := lowestversions.Read()
	if err != nil {
		fmt.Fprintln(out, "Warning:", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		// One by one, so that a version that cannot be compared hides no other.
		low, err := lowestversions.Below(table.Components, map[string]string{name: versions[name]})
		if err != nil {
			fmt.Fprintln(out, "Warning: cannot tell whether there are known holes:", err)
		}
		for _, what := range low {
			fmt.Fprintln(out, "Warning:", what)
		}
	}
}
