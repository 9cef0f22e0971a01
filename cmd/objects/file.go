// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// private is the mode of files that may contain credentials.
const private = 0o600

// WriteFile writes a file that may contain credentials. Only its owner can read it, also if the file existed before. If
// the write fails, no partial file remains.
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

// protect removes the permissions of other users from a file that existed before. It does not change a device or a
// pipe.
func protect(f *os.File) (regular bool, err error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	return true, f.Chmod(private)
}
