// SPDX-License-Identifier: Apache-2.0

// Package release holds the commands about release payloads.
package release

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/support/releaseinfo"
)

// NewCommand returns the command `release`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "release", Short: "Make, read, compare and mirror release payloads",
		Example: "  hypershift release info registry.example.com/release:1.36.3\n" +
			"  hypershift release mirror registry.example.com/release:1.36.3 --to registry.rack.example/mirror",
	}
	cmd.AddCommand(newBuildCommand(), newInfoCommand(), newDiffCommand(), newMirrorCommand())
	return cmd
}

// newPrintCommand completes cmd so that it reads a number of releases and prints them with print. The hint is part of
// the error about a wrong number of arguments.
func newPrintCommand(cmd *cobra.Command, images int, hint string, print func(w io.Writer, releases []*releaseinfo.ReleaseImage, output string) error) *cobra.Command {
	var registry registryFlags
	var output string
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != images {
			return errors.New(hint)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var releases []*releaseinfo.ReleaseImage
		for _, image := range args {
			release, err := registry.lookup(cmd.Context(), image)
			if err != nil {
				return err
			}
			releases = append(releases, release)
		}
		return print(cmd.OutOrStdout(), releases, output)
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json (default: text)")
	registry.addFlags(cmd.Flags())
	return cmd
}
