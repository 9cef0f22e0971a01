// SPDX-License-Identifier: Apache-2.0

// docs writes the reference pages of the programs: go run ./cmd/docs docs/reference/cli
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/openshift/hypershift/cmd/root"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "Error: usage: docs <folder>")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// write replaces the folder's pages.
func write(folder string) error {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return fmt.Errorf("empty %s: %w", folder, err)
	}
	for _, cmd := range []*cobra.Command{root.Hypershift(), root.HCP()} {
		if err := doc.GenMarkdownTree(cmd, folder); err != nil {
			return fmt.Errorf("write the pages of %s: %w", cmd.Name(), err)
		}
	}
	return nil
}
