// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"regexp"
)

// AllocationKeyPrefix is the prefix of the agent_name of every allocation for a MaasMachine.
const AllocationKeyPrefix = "hypershift-maasmachine-"

// The workload annotations of an allocation for a MaasMachine. MAAS clears them when a release ends. They stay on a
// machine that is marked as broken and then as fixed.
const (
	AnnotationMachineUID = "hypershift-machine-uid"
	AnnotationMachine    = "hypershift-machine"
	AnnotationNamespace  = "hypershift-namespace"
	AnnotationCluster    = "hypershift-cluster"
	AnnotationClusterUID = "hypershift-cluster-uid"
	// AnnotationPool holds the name of the machine's MachineDeployment, or of its MachineSet if there is no
	// MachineDeployment.
	AnnotationPool = "hypershift-pool"
	// AnnotationErase holds the erase mode of the MaasMachine, with which a machine is released that no MaasMachine uses
	// any more. It is missing without an erase mode.
	AnnotationErase = "hypershift-erase"
)

// AllocationKey returns the agent_name of the allocation for the MaasMachine with the given UID. MAAS stores it in the
// same transaction as the allocation. A process that crashed before it recorded the allocation can therefore find it
// again.
func AllocationKey(uid string) string { return AllocationKeyPrefix + uid }

// Allocation identifies the objects for which a machine was allocated.
type Allocation struct {
	// UID is the UID of the MaasMachine, and ClusterUID the UID of its MaasCluster.
	UID, ClusterUID string
}

// Comment returns the comment for the allocate call. MAAS never shows an agent_name, but its event log keeps the
// comment.
func (a Allocation) Comment(machine string) string {
	return fmt.Sprintf("for MaasMachine %s (uid %s, cluster %s)", machine, a.UID, a.ClusterUID)
}

var allocationComment = regexp.MustCompile(`for MaasMachine \S+ \(uid ([^\s,]+), cluster ([^\s)]*)\)`)

// AllocationOf parses the comment of an allocation in the description of an event. It returns false if there is none.
func AllocationOf(description string) (Allocation, bool) {
	found := allocationComment.FindStringSubmatch(description)
	if found == nil {
		return Allocation{}, false
	}
	return Allocation{UID: found[1], ClusterUID: found[2]}, true
}
