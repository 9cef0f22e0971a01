// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// state is the state file in the machine's folder. It is written before anything is created, so that everything that a
// crash leaves can be found again.
type state struct {
	Config Config `json:"config"`
	// PID is the host's process ID of the machine's PID 1; zero until it exists.
	PID int `json:"pid,omitempty"`
	// StartTime is the kernel's start time of that process: process IDs are reused.
	StartTime uint64 `json:"startTime,omitempty"`
	// Ready reports whether PID 1 is independent. Before that, it dies with the process that starts the machine.
	Ready bool `json:"ready,omitempty"`
}

func statePath(dir string) string { return filepath.Join(dir, "machine.json") }

func readState(dir string) (*state, error) {
	data, err := os.ReadFile(statePath(dir))
	if err != nil {
		return nil, fmt.Errorf("looking up the machine in %s: %w", dir, err)
	}
	s := &state{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", statePath(dir), err)
	}
	return s, nil
}

// write replaces the file atomically: a reader sees the old state or the new one.
func (s *state) write() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state of machine %s: %w", s.Config.Name, err)
	}
	target := statePath(s.Config.Dir)
	if err := os.WriteFile(target+".new", data, 0o600); err != nil {
		return fmt.Errorf("writing the state of machine %s: %w", s.Config.Name, err)
	}
	if err := os.Rename(target+".new", target); err != nil {
		return fmt.Errorf("writing the state of machine %s: %w", s.Config.Name, err)
	}
	return nil
}

// alive reports whether PID 1 runs; false for a zombie, whose namespaces are gone.
func (s *state) alive() bool {
	if s.PID == 0 {
		return false
	}
	started, zombie, err := processStart(s.PID)
	return err == nil && !zombie && started == s.StartTime
}

// processStart reads the start time of a process, in clock ticks since the machine booted, and whether it is a zombie.
func processStart(pid int) (ticks uint64, zombie bool, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false, err
	}
	// The program name, in parentheses, may contain spaces: the fields are counted from its end.
	_, rest, found := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return 0, false, fmt.Errorf("process %d: cannot read its state %q", pid, data)
	}
	ticks, err = strconv.ParseUint(fields[19], 10, 64)
	return ticks, fields[0] == "Z" || fields[0] == "X", err
}
