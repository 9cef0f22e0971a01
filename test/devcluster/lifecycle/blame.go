// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tailLines and tailBytes limit how much of a log is shown.
const (
	tailLines = 12
	tailBytes = 32 << 10
)

// blame adds the last log lines of the units that may have caused the error.
func (e *Environment) blame(err error, units ...string) error {
	for _, unit := range units {
		err = e.blameLog(err, e.UnitLog(unit))
	}
	return err
}

// UnitLog returns the log file of a service of the management machine.
func (e *Environment) UnitLog(unit string) string {
	return filepath.Join(e.Management(), "root/var/log/units", unit+".service.log")
}

func (e *Environment) blameLog(err error, log string) error {
	lines := tail(log)
	if lines == "" {
		return err
	}
	return fmt.Errorf("%w\n--- last lines of %s\n%s", err, log, lines)
}

// tail returns the end of a file; empty if it does not exist.
func tail(name string) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	data := make([]byte, min(info.Size(), tailBytes))
	n, _ := file.ReadAt(data, info.Size()-int64(len(data))) // Show what was read, even if the read failed.
	lines := strings.Split(string(bytes.TrimSpace(data[:n])), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
