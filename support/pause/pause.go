// SPDX-License-Identifier: Apache-2.0

// Package pause evaluates a pause at a point in time.
package pause

import (
	"strconv"
	"time"
)

// State is the effect of a pause at a point in time.
type State struct {
	// Paused reports whether reconciliation is paused. A deletion still proceeds.
	Paused bool
	// Frozen reports whether a deletion is paused too, as with a pause of Cluster API.
	Frozen bool
	// For is the remaining duration of the pause; zero for a pause without end.
	For time.Duration
	// Invalid reports whether the value is neither a boolean nor a time. An invalid value does not pause.
	Invalid bool
	// Text describes the end of the pause for users.
	Text string
}

// Until evaluates the field pausedUntil of a HostedCluster, HostedControlPlane or NodePool at the time now. nil and
// false mean not paused.
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
