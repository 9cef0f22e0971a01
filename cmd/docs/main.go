// SPDX-License-Identifier: Apache-2.0

// docs writes the reference pages of the programs: go run ./cmd/docs docs/reference/cli
// With -man it writes man pages: go run ./cmd/docs -man dist/man
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/openshift/hypershift/cmd/flaggroup"
	"github.com/openshift/hypershift/cmd/root"
)

func main() {
	man := flag.Bool("man", false, "write man pages, not Markdown")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "Error: usage: docs [-man] <folder>")
		os.Exit(2)
	}
	generate := markdown
	if *man {
		generate = manPages
	}
	if err := write(flag.Arg(0), generate); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// markdown writes the Markdown pages of a command and its subcommands. Flags are in the groups of the help.
func markdown(cmd *cobra.Command, folder string) error {
	if err := doc.GenMarkdownTree(cmd, folder); err != nil {
		return err
	}
	return groupFlags(cmd, folder)
}

// groupFlags replaces the list of flags in the pages of commands whose help has groups.
func groupFlags(cmd *cobra.Command, folder string) error {
	for _, child := range cmd.Commands() {
		if err := groupFlags(child, folder); err != nil {
			return err
		}
	}
	if !flaggroup.Shown(cmd) {
		return nil
	}
	page := filepath.Join(folder, strings.ReplaceAll(cmd.CommandPath(), " ", "_")+".md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	flat := cmd.NonInheritedFlags().FlagUsages()
	if !strings.Contains(string(text), flat) {
		return fmt.Errorf("%s does not list the flags of %s", page, cmd.CommandPath())
	}
	grouped := strings.Replace(string(text), flat, flaggroup.Usages(cmd, 0), 1)
	return os.WriteFile(page, []byte(grouped), 0o600)
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
