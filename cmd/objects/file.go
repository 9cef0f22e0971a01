// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// private is the mode of what may hold credentials.
const private = 0o600

// WriteFile writes a file that may hold credentials: for its owner alone, also where it was there before, and whole or not at all.
func WriteFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, private)
	if err != nil {
		return err
	}
	regular, err := protect(f)
	if err == nil {
		err = write(f)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		if regular {
			_ = os.Remove(name)
		}
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// protect takes a file from others that could read it before. A device or a pipe stays as it is.
func protect(f *os.File) (regular bool, err error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	return true, f.Chmod(private)
}
