// SPDX-License-Identifier: Apache-2.0

// Command modulefiles reads file names from its standard input, each terminated by a NUL as `git ls-files -z` prints
// them. It fails for names that prevent packaging of the Go module: a proxy rejects a module that contains one.
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

// check joins an error for each name that a module must not contain.
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

// untilNUL is a bufio.SplitFunc that splits at NUL bytes.
func untilNUL(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
