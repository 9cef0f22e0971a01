// SPDX-License-Identifier: Apache-2.0

// Package nodeupdate names the annotations of a Node by which it is updated in place and migrates to another address.
// Programs on machines import it instead of the kinds of the API. Package v1beta1 describes the annotations.
package nodeupdate

// Annotations of a Node.
const (
	// Desired is asked for, Current is what runs.
	Desired = "hypershift.openshift.io/desired-node-config"
	Current = "hypershift.openshift.io/current-node-config"
	// State is one of the states below, and Message goes with the last two.
	State   = "hypershift.openshift.io/node-config-state"
	Message = "hypershift.openshift.io/node-config-message"

	// DesiredAddress is the desired address of the machine's control plane, and CurrentAddress the one in use. Each is the URL of the API server, and after a
	// blank the host of the ignition-server where that is published. AddressMessage says why it does not yet.
	DesiredAddress = "hypershift.openshift.io/desired-control-plane-address"
	CurrentAddress = "hypershift.openshift.io/current-control-plane-address"
	AddressMessage = "hypershift.openshift.io/control-plane-address-message"
)

// States of a machine.
const (
	Working    = "Working"
	Done       = "Done"
	RolledBack = "RolledBack"
	Failed     = "Failed"
)
