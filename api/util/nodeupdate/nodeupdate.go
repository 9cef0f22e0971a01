// SPDX-License-Identifier: Apache-2.0

// Package nodeupdate names the annotations of a Node by which it is updated in place, for programs on machines, which leave the kinds of the API out.
// Package v1beta1 says what they mean.
package nodeupdate

// Annotations of a Node.
const (
	// Desired is asked for, Current is what runs.
	Desired = "hypershift.openshift.io/desired-node-config"
	Current = "hypershift.openshift.io/current-node-config"
	// State is one of the states below, and Message goes with the last two.
	State   = "hypershift.openshift.io/node-config-state"
	Message = "hypershift.openshift.io/node-config-message"
)

// States of a machine.
const (
	Working    = "Working"
	Done       = "Done"
	RolledBack = "RolledBack"
	Failed     = "Failed"
)
