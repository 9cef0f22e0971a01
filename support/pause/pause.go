// SPDX-License-Identifier: Apache-2.0

// Package pause says what a pause means at a moment.
package pause

import (
	"strconv"
	"time"
)

// State is what a pause means at a moment.
type State struct {
	// Paused tells whether nothing may be done now, but for a deletion.
	Paused bool
	// Frozen tells whether not even a deletion may go on, as with a pause of Cluster API.
	Frozen bool
	// For is how long the pause lasts yet; zero for a pause without end.
	For time.Duration
	// Invalid tells that the value is neither a boolean nor a time; it does not pause.
	Invalid bool
	// Text says for people until when.
	Text string
}

// Until reads the field pausedUntil of a HostedCluster, HostedControlPlane or NodePool at a moment. nil and false mean not paused.
func Until(value *string, now time.Time) State {
	if value == nil || *value == "" {
		return State{}
	}
	if forever, err := strconv.ParseBool(*value); err == nil {
		return State{Paused: forever, Text: "spec.pausedUntil is removed"}
	}
	until, err := time.Parse(time.RFC3339, *value)
	if err != nil {
		return State{Invalid: true}
	}
	if !until.After(now) {
		return State{}
	}
	return State{Paused: true, For: until.Sub(now), Text: *value}
}
