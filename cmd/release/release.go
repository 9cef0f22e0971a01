// SPDX-License-Identifier: Apache-2.0

// Package release holds the commands about release payloads.
package release

import "github.com/spf13/cobra"

// NewCommand makes `release`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "release", Short: "Make, read, compare and mirror release payloads"}
	cmd.AddCommand(newBuildCommand(), newInfoCommand(), newDiffCommand(), newMirrorCommand())
	return cmd
}
