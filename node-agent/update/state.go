// SPDX-License-Identifier: Apache-2.0

// Package update moves a node from one configuration to another, and back if its Node does not become Ready.
// Before a change, it backs up everything that will change and writes a state with the target of the update. If the
// update is interrupted, the next start of the machine completes it or the rollback. The machine never stays between
// two configurations.
package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/openshift/hypershift/node-agent/host"
)

const (
	dir        = "/var/lib/hypershift/update"
	statePath  = dir + "/state.json"
	targetPath = dir + "/target.json"
	beforeDir  = dir + "/before"
	// roomPath reserves disk space: a rollback must work even if the new configuration fills the disk.
	roomPath = dir + "/room"
	roomSize = 1 << 20
	bootID   = "/proc/sys/kernel/random/boot_id"
)

// Phase is the phase of an update; empty without an update.
type Phase string

const (
	// Switching means that the machine changes to the desired configuration.
	Switching Phase = "Switching"
	// Restoring means that the machine rolls back.
	Restoring Phase = "Restoring"
	// RolledBack means that the machine has rolled back.
	RolledBack Phase = "RolledBack"
	// Failed means that the machine has rolled back, but its Node is not Ready with the previous configuration either.
	Failed Phase = "Failed"
)

// State is the progress of an update. The zero value means that no update is in progress, and that the machine runs
// the configuration in its plan.
type State struct {
	Phase Phase `json:"phase"`
	// Hash identifies the desired configuration.
	Hash string `json:"hash"`
	// Message is the reason for the rollback.
	Message string `json:"message,omitempty"`
	// Starts counts the attempts to apply the configuration. A machine that exceeds the limit rolls back.
	Starts int `json:"starts,omitempty"`
	// Boot is the boot ID in which the configuration was applied; empty if it was not applied yet.
	Boot string `json:"boot,omitempty"`
	// Restart lists the units of the user that the configuration changes.
	Restart []string `json:"restart,omitempty"`
}

// Underway reports whether the machine is between two configurations.
func (s State) Underway() bool { return s.Phase == Switching || s.Phase == Restoring }

// Load reads the progress of an update.
func Load(h *host.Host) (State, error) {
	raw, err := h.Read(statePath)
	if err != nil || raw == nil {
		return State{}, err
	}
	s := State{}
	if err := json.Unmarshal(raw, &s); err != nil {
		return State{}, fmt.Errorf("reading %s: %w", statePath, err)
	}
	return s, nil
}

func (s State) save(h *host.Host) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := h.Write(statePath, raw, 0o600); err != nil {
		return fmt.Errorf("writing the state of the update: %w", err)
	}
	return nil
}

// Forget removes the result of an update, for example when the desired configuration changes.
func Forget(h *host.Host) error {
	return h.Remove(statePath)
}

// cleanUp removes the files that are only needed for a rollback.
func cleanUp(h *host.Host) error {
	return errors.Join(os.RemoveAll(h.Path(beforeDir)), os.RemoveAll(h.Path(beforeDir+partial)), os.RemoveAll(h.Path(targetPath)), os.RemoveAll(h.Path(roomPath)))
}

func boot(h *host.Host) string {
	id, err := h.Read(bootID)
	if err != nil || len(id) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
}
