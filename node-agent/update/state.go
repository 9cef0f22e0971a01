// SPDX-License-Identifier: Apache-2.0

// Package update brings a machine that is a Node from one configuration to another, and back when its Node does not become Ready.
//
// Before anything is changed, all that will be is kept, and a state is written that says what the machine is on its way to. Whatever happens
// after that, a start of the machine comes to the whole of the one configuration or to the whole of the other.
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
	// roomPath keeps room on the disk: one that the configuration fills must not keep the machine from going back.
	roomPath = dir + "/room"
	roomSize = 1 << 20
	bootID   = "/proc/sys/kernel/random/boot_id"
)

// Phase is what the machine is on its way to; empty for nothing.
type Phase string

const (
	// Switching is a machine that goes to the wanted configuration.
	Switching Phase = "Switching"
	// Restoring is one that goes back.
	Restoring Phase = "Restoring"
	// RolledBack is one that went back.
	RolledBack Phase = "RolledBack"
	// Failed is one that went back, and whose Node is not Ready with what it had either.
	Failed Phase = "Failed"
)

// State is how far an update is. The zero value is that of a machine that runs the configuration in its plan, and was never asked for another.
type State struct {
	Phase Phase `json:"phase"`
	// Hash is the configuration that was wanted.
	Hash string `json:"hash"`
	// Message says why the machine goes back, or went.
	Message string `json:"message,omitempty"`
	// Starts counts how often the machine was brought to it: one that does not survive that goes back.
	Starts int `json:"starts,omitempty"`
	// Boot is the boot in which the machine was brought to it; empty before.
	Boot string `json:"boot,omitempty"`
	// Restart are the user's units that the configuration changes.
	Restart []string `json:"restart,omitempty"`
}

// Underway tells that the machine is between two configurations.
func (s State) Underway() bool { return s.Phase == Switching || s.Phase == Restoring }

// Load reads how far an update is.
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
		return fmt.Errorf("writing how far the update is: %w", err)
	}
	return nil
}

// Forget takes the outcome of an update away, when another configuration is wanted.
func Forget(h *host.Host) error {
	return h.Remove(statePath)
}

// cleanUp takes away what was kept for the way back.
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
