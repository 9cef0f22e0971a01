// SPDX-License-Identifier: Apache-2.0

// Command modulefiles reads file names from its standard input, each ended by a NUL as `git ls-files -z` prints them, and fails
// for those that keep the Go module from being packaged: a proxy refuses the whole module for one of them.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/mod/module"
)

func main() {
	if err := check(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check joins the errors of all names that no module may hold.
func check(names io.Reader) error {
	var errs []error
	lines := bufio.NewScanner(names)
	lines.Split(untilNUL)
	for lines.Scan() {
		if err := module.CheckFilePath(lines.Text()); err != nil {
			errs = append(errs, fmt.Errorf("a Go module can't hold this file, give it another name: %w", err))
		}
	}
	return errors.Join(append(errs, lines.Err())...)
}

// untilNUL is a bufio.SplitFunc.
func untilNUL(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
