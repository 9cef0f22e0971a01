// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func newInfoCommand() *cobra.Command {
	return newPrintCommand(
		&cobra.Command{
			Use: "info <release image>", Short: "Print what a release payload holds",
			Example: "  hypershift release info registry.example.com/release:1.36.3 --pull-secret pull-secret.json",
		},
		1, "name one release image, e.g. hypershift release info registry.example.com/release:1.36.3",
		func(w io.Writer, releases []*releaseinfo.ReleaseImage, output string) error {
			return printRelease(w, releases[0], output)
		})
}

func printRelease(w io.Writer, release *releaseinfo.ReleaseImage, output string) error {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{
			"image": release.PullSpec(), "version": release.Version(), "distribution": release.Distribution(),
			"architecture": release.Architecture(), "components": release.ComponentImages(), "componentVersions": release.ComponentVersions(),
		})
	}
	if output != "" {
		return exit.UsageError(fmt.Errorf("--output %q: use json", output))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "Image\t%s\nVersion\t%s\nDistribution\t%s\nArchitecture\t%s\n\nCOMPONENT\tIMAGE\n",
		release.PullSpec(), release.Version(), release.Distribution(), release.Architecture())
	images := release.ComponentImages()
	for _, tag := range slices.Sorted(maps.Keys(images)) {
		fmt.Fprintf(table, "%s\t%s\n", tag, images[tag])
	}
	versions := release.ComponentVersions()
	if len(versions) > 0 {
		fmt.Fprint(table, "\nPART\tVERSION\n")
	}
	for _, part := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(table, "%s\t%s\n", part, versions[part])
	}
	return table.Flush()
}
