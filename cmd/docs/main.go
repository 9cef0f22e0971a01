// SPDX-License-Identifier: Apache-2.0

// docs writes the reference pages of the programs: go run ./cmd/docs docs/reference/cli
// With -man it writes man pages: go run ./cmd/docs -man dist/man
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/openshift/hypershift/cmd/root"
)

func main() {
	man := flag.Bool("man", false, "write man pages, not Markdown")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "Error: usage: docs [-man] <folder>")
		os.Exit(2)
	}
	generate := doc.GenMarkdownTree
	if *man {
		generate = manPages
	}
	if err := write(flag.Arg(0), generate); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// manPages writes the man pages of a command and its subcommands. They have no date, so that the same sources give the
// same pages.
func manPages(cmd *cobra.Command, folder string) error {
	return doc.GenManTree(cmd, &doc.GenManHeader{Section: "1", Source: cmd.Root().Name(), Date: &time.Time{}}, folder)
}

// write replaces the folder's pages.
func write(folder string, generate func(*cobra.Command, string) error) error {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return fmt.Errorf("empty %s: %w", folder, err)
	}
	for _, cmd := range []*cobra.Command{root.Hypershift(), root.HCP()} {
		if err := generate(cmd, folder); err != nil {
			return fmt.Errorf("write the pages of %s: %w", cmd.Name(), err)
		}
	}
	return nil
}
