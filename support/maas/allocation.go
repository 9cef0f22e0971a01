// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"regexp"
)

// AllocationKeyPrefix starts the agent_name of every allocation made for a MaasMachine.
const AllocationKeyPrefix = "hypershift-maasmachine-"

// Workload annotations of an allocation made for a MaasMachine. MAAS clears them when a release ends; they stay on a machine that is
// marked as broken and as fixed.
const (
	AnnotationMachineUID = "hypershift-machine-uid"
	AnnotationMachine    = "hypershift-machine"
	AnnotationNamespace  = "hypershift-namespace"
	AnnotationCluster    = "hypershift-cluster"
	AnnotationClusterUID = "hypershift-cluster-uid"
	// AnnotationPool names the MachineDeployment, or the MachineSet without one, whose machine it is.
	AnnotationPool = "hypershift-pool"
)

// AllocationKey is the agent_name of the allocation made for the MaasMachine with a UID. MAAS stores it in the transaction
// that allocates, so a process that died before it could write down what it got finds it again.
func AllocationKey(uid string) string { return AllocationKeyPrefix + uid }

// Allocation says what a machine was allocated for.
type Allocation struct {
	// UID is that of the MaasMachine, ClusterUID that of its MaasCluster.
	UID, ClusterUID string
}

// Comment is the comment of the call that allocates. MAAS never shows an agent_name, but its event log keeps the comment.
func (a Allocation) Comment(machine string) string {
	return fmt.Sprintf("for MaasMachine %s (uid %s, cluster %s)", machine, a.UID, a.ClusterUID)
}

var allocationComment = regexp.MustCompile(`for MaasMachine \S+ \(uid ([^\s,]+), cluster ([^\s)]*)\)`)

// AllocationOf finds the comment of an allocation in the description of an event.
func AllocationOf(description string) (Allocation, bool) {
	found := allocationComment.FindStringSubmatch(description)
	if found == nil {
		return Allocation{}, false
	}
	return Allocation{UID: found[1], ClusterUID: found[2]}, true
}
