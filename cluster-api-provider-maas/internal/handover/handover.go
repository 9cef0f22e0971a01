// SPDX-License-Identifier: Apache-2.0

// Package handover records on a MaasCluster the machines that MAAS did not release in time. The records outlive the
// MaasMachine and the process. A dead BMC must not block the deletion of a Machine, and its allocation in MAAS must not
// be forgotten.
//
//	MaasMachine deleted ─> release in MAAS overdue ─> record on the MaasCluster ─> finalizer of the MaasMachine removed
//	                                                  └─> release continues ─> MAAS has released it ─> record removed
//
// The MaasCluster keeps its own finalizer while it has a record.
package handover

import (
	"fmt"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
)

// Records accesses the records of a MaasCluster. It keeps an invalid record, since its content is unknown.
var Records = record.Kind[Record]{
	Prefix: "handed-over-machine.infrastructure.cluster.x-k8s.io/",
	Broken: func(cause error) Record { return Record{Words: fmt.Sprintf("its annotation can't be read: %v", cause)} },
}

// Record holds what is needed to release a machine without its MaasMachine.
type Record struct {
	// Machine is the name of the MaasMachine. UID is the UID from which the allocation key is built.
	Machine string `json:"machine"`
	UID     string `json:"uid"`
	// Keyless is true if another provider allocated the machine, without a key.
	Keyless bool `json:"keyless,omitempty"`
	// User is the MAAS user that allocated the machine; empty if unknown.
	User     string    `json:"user,omitempty"`
	Hostname string    `json:"hostname,omitempty"`
	Since    time.Time `json:"since"`
	// Words is the reason why MAAS had not released the machine when the release was delegated.
	Words string `json:"words,omitempty"`
	// Erase is the disk erasure of the release.
	Erase *infrav1.EraseConfig `json:"erase,omitempty"`
	// LXD is true for a virtual machine that must be deleted in MAAS.
	LXD bool `json:"lxd,omitempty"`
	// Address is the annotation with the static address that the machine still has.
	Address string `json:"address,omitempty"`
}

// Describe returns a message that names the machine and the remedies; words states the cause.
func (r Record) Describe(infra *infrav1.MaasCluster, systemID, words string) string {
	return fmt.Sprintf("MAAS has not released machine %s (%s) of the deleted MaasMachine %s since %s: %s. Fix its power, or mark it as broken or release it in "+
		"MAAS by hand; to forget it: %s",
		r.Hostname, systemID, r.Machine, r.Since.UTC().Format(time.RFC3339), words, Records.Forget(infra, systemID))
}
