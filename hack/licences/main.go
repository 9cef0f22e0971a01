// SPDX-License-Identifier: Apache-2.0

// Command licences reads names of Go files from its standard input, each terminated by a NUL as `git ls-files -z`
// prints them. It fails for files whose first line does not name the license. With -write it adds the line.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const header = "// SPDX-License-Identifier: Apache-2.0\n"

func main() {
	write := flag.Bool("write", false, "add the line where it is missing")
	flag.Parse()
	if err := check(".", os.Stdin, *write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check joins the errors of all files. Generated files are exempt: their generator writes their header.
func check(root string, names io.Reader, write bool) error {
	raw, err := io.ReadAll(names)
	if err != nil {
		return fmt.Errorf("reading the names of files: %w", err)
	}
	tree, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer tree.Close()
	var errs []error
	for name := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
		source, err := tree.ReadFile(name)
		switch {
		case err != nil:
			errs = append(errs, err)
		case bytes.HasPrefix(source, []byte(header)), bytes.Contains(source, []byte("\n// Code generated ")), bytes.HasPrefix(source, []byte("// Code generated ")):
		case write:
			errs = append(errs, tree.WriteFile(name, append([]byte(header+"\n"), source...), 0o644))
		default:
			errs = append(errs, fmt.Errorf("%s does not begin with %q: run make licences", name, strings.TrimSpace(header)))
		}
	}
	return errors.Join(errs...)
}
