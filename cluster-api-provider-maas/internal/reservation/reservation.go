// SPDX-License-Identifier: Apache-2.0

// Package reservation records on a MaasCluster the machines that stay allocated for a successor. The records outlive
// the MaasMachine and the process. A rollout of a MaasMachine needs them: Cluster API creates the successor only after
// the old Machine is gone.
//
//	MaasMachine deleted ─> MAAS releases its machine, erased ─> record ─> allocated again, same key ─> finalizer removed
//	       successor created ─> it claims the record ─> takes over machine and key ─> record removed
//	       no successor in time ─> record removed ─> the sweep releases the machine
//
// The machines of a lost cluster stay allocated in the same way, until the MaasMachines of the restored cluster claim
// them:
//
//	MaasCluster created with restored-from ─> machines with the annotations and keys of the lost one ─> records
//	       successors created ─> they claim the records ─> take over machines and keys
package reservation

import (
	"cmp"
	"time"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
)

// SuccessorTimeout is how long a machine is reserved without a successor. Cluster API creates the successor within seconds.
const SuccessorTimeout = 10 * time.Minute

// Records accesses the records of a MaasCluster. An invalid record is ignored, and the sweep releases its machine.
var Records = record.Kind[Record]{Prefix: "reserved-machine.infrastructure.cluster.x-k8s.io/"}

// Record describes a reserved machine.
type Record struct {
	// UID is the UID from which the allocation key is built.
	UID string `json:"uid"`
	// Deployment is the MachineDeployment of the machine. Set is the MachineSet of the deleted MaasMachine.
	Deployment string    `json:"deployment"`
	Set        string    `json:"set"`
	Hostname   string    `json:"hostname,omitempty"`
	Since      time.Time `json:"since"`
	// Successor is the UID of the MaasMachine that claims the machine; empty without a claim.
	Successor string `json:"heir,omitempty"`
	// Restored is true for a machine that runs as a node of a lost cluster that is restored. Its reservation has no
	// timeout.
	Restored bool `json:"restored,omitempty"`
}

// For reports whether a MaasMachine of this deployment and set may claim the machine. A MaasMachine of the same set is
// not a successor: it replaces an unhealthy machine or scales up. A restored machine is for any MaasMachine of its
// pool, which is the MachineSet if there is no deployment.
func (r Record) For(deployment, set string) bool {
	if r.Restored {
		return r.Deployment != "" && r.Deployment == cmp.Or(deployment, set)
	}
	return deployment != "" && r.Deployment == deployment && r.Set != set
}
