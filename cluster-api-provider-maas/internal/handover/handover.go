// SPDX-License-Identifier: Apache-2.0

// Package handover remembers on a MaasCluster, where it outlives the MaasMachine and the process, which machines MAAS did not take back
// in time: a dead BMC must not hold a Machine for ever, and what it holds in MAAS must not be forgotten either.
//
//	MaasMachine deleted ─> MAAS does not take its machine back ─> record on the MaasCluster ─> finalizer of the MaasMachine goes
//	                                                              └─> worked off ─> MAAS has it back ─> record goes
//
// The MaasCluster keeps its own finalizer while a record stands.
package handover

import (
	"fmt"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
)

// Records of a MaasCluster. One that a person broke stands as well: nobody knows what it was about.
var Records = record.Kind[Record]{
	Prefix: "handed-over-machine.infrastructure.cluster.x-k8s.io/",
	Broken: func(cause error) Record { return Record{Words: fmt.Sprintf("its annotation can't be read: %v", cause)} },
}

// Record is what must be known of a machine to give it back when its MaasMachine is gone.
type Record struct {
	// Machine is the name of the MaasMachine, UID what the allocation's key is made of.
	Machine string `json:"machine"`
	UID     string `json:"uid"`
	// Keyless is set when another provider allocated the machine, without a key.
	Keyless bool `json:"keyless,omitempty"`
	// User is the MAAS user under whom the machine was allocated; empty when nobody knows.
	User     string    `json:"user,omitempty"`
	Hostname string    `json:"hostname,omitempty"`
	Since    time.Time `json:"since"`
	// Words say why MAAS did not have it back when it was handed over.
	Words string `json:"words,omitempty"`
	// Erase is how its disks are to be erased.
	Erase *infrav1.EraseConfig `json:"erase,omitempty"`
	// LXD is set for a virtual machine that is to be deleted in MAAS.
	LXD bool `json:"lxd,omitempty"`
	// Address is the annotation about the static address that the machine still has.
	Address string `json:"address,omitempty"`
}

// Describe says which machine is not back, and what a person can do; words are why.
func (r Record) Describe(infra *infrav1.MaasCluster, systemID, words string) string {
	return fmt.Sprintf("MAAS has not taken back machine %s (%s) of MaasMachine %s, which was deleted, since %s: %s. Mend its power, or mark it as broken or release it in "+
		"MAAS by hand; to forget it: %s",
		r.Hostname, systemID, r.Machine, r.Since.UTC().Format(time.RFC3339), words, Records.Forget(infra, systemID))
}
