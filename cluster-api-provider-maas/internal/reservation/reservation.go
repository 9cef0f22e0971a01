// SPDX-License-Identifier: Apache-2.0

// Package reservation remembers on a MaasCluster, where it outlives the MaasMachine and the process, which machines are kept allocated for
// the successor of a MaasMachine that a roll-out replaces: Cluster API makes the successor only when the old Machine is gone.
//
//	MaasMachine deleted ─> MAAS has its machine back, erased ─> record ─> allocated again, same key ─> finalizer of the MaasMachine goes
//	       successor made ─> it signs the record ─> takes over machine and key ─> record goes
//	       no successor in time ─> record goes ─> the sweep gives the machine back
//
// So are the machines of a cluster that was lost, until the MaasMachines of the restored one have them:
//
//	MaasCluster made with restored-from ─> machines with the marks and keys of the lost one ─> records ─> successors sign, and take over
package reservation

import (
	"cmp"
	"time"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
)

// Patience is how long a machine is kept for a successor that does not come. Cluster API makes it within seconds.
const Patience = 10 * time.Minute

// Records of a MaasCluster. One that a person broke is forgotten, and the sweep gives its machine back.
var Records = record.Kind[Record]{Prefix: "reserved-machine.infrastructure.cluster.x-k8s.io/"}

// Record is a machine that is kept.
type Record struct {
	// UID is what the allocation's key is made of.
	UID string `json:"uid"`
	// Deployment is the MachineDeployment whose machine it is, and Set the MachineSet of the MaasMachine that is gone.
	Deployment string    `json:"deployment"`
	Set        string    `json:"set"`
	Hostname   string    `json:"hostname,omitempty"`
	Since      time.Time `json:"since"`
	// Heir is the UID of the MaasMachine that takes the machine over; empty until one has come.
	Heir string `json:"heir,omitempty"`
	// Restored is set for a machine that runs as a node of a cluster that was lost and is restored. It is kept for as long as it takes.
	Restored bool `json:"restored,omitempty"`
}

// For tells whether a MaasMachine of this deployment and set may take the machine over. One of the same set is made where a machine was
// ill, or more are wanted, and is no successor. A restored machine is for any of its pool, which is a set where there is no deployment.
func (r Record) For(deployment, set string) bool {
	if r.Restored {
		return r.Deployment != "" && r.Deployment == cmp.Or(deployment, set)
	}
	return deployment != "" && r.Deployment == deployment && r.Set != set
}
