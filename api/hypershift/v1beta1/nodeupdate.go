// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "github.com/openshift/hypershift/api/util/nodeupdate"

// Annotations of a Node by which machines of a Kubernetes release are updated in place. The hosted-cluster-config-operator asks, the machine's
// node-agent answers with the kubelet's own credentials: what it says is believed of this one Node alone.
const (
	// DesiredNodeConfigAnnotation is the hash of the configuration that the machine is to take, the target version of its MachineSet. It is
	// written when the Node has been drained; a Node without it stays as it was installed.
	DesiredNodeConfigAnnotation = nodeupdate.Desired
	// CurrentNodeConfigAnnotation is the hash of the configuration that the machine runs, from its first boot on.
	CurrentNodeConfigAnnotation = nodeupdate.Current
	// NodeConfigStateAnnotation is how far the machine is with the desired configuration: one of the NodeConfigState values.
	NodeConfigStateAnnotation = nodeupdate.State
	// NodeConfigMessageAnnotation is a sentence for people that goes with NodeConfigRolledBack and NodeConfigFailed.
	NodeConfigMessageAnnotation = nodeupdate.Message
	// NodeUpdateCordonedAnnotation is on a Node that was cordoned for an update, with the hash that it was cordoned for. No
	// administrator cordoned it, and the Node takes pods again when the update is over.
	NodeUpdateCordonedAnnotation = "hypershift.openshift.io/cordoned-for-node-config"
)

// States of NodeConfigStateAnnotation.
const (
	// NodeConfigWorking is a machine that takes the desired configuration.
	NodeConfigWorking = nodeupdate.Working
	// NodeConfigDone is a machine that runs the configuration in CurrentNodeConfigAnnotation.
	NodeConfigDone = nodeupdate.Done
	// NodeConfigRolledBack is a machine that went back to the configuration in CurrentNodeConfigAnnotation, because its Node did not become
	// Ready with the desired one.
	NodeConfigRolledBack = nodeupdate.RolledBack
	// NodeConfigFailed is a machine that could not take the desired configuration and did not get as far as changing anything, which it tries again,
	// or could not go back either.
	NodeConfigFailed = nodeupdate.Failed
)
