// SPDX-License-Identifier: Apache-2.0

// Package quarantine remembers on a MaasCluster, where it outlives the process, on which machines of MAAS deployments failed.
//
//	failure ─> record on the MaasCluster ─> set aside ─> n failures, and the image runs elsewhere ─> quarantine
//	                                                     with the key of an administrator: a tag that every provider heeds
package quarantine

import (
	"fmt"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
)

// Tag is that of a machine that no provider takes. Whoever takes it off in MAAS ends the quarantine.
const Tag = "hypershift-quarantine"

// AfterAnnotation of a MaasCluster overrules, for its machines, after how many failed deployments one is put into quarantine; 0 means
// never.
const AfterAnnotation = "infrastructure.cluster.x-k8s.io/quarantine-after"

// Records of a MaasCluster. One that a person broke is forgotten.
var Records = record.Kind[Record]{Prefix: "failed-machine.infrastructure.cluster.x-k8s.io/"}

// Record is what is known of a machine on which deployments of a cluster failed.
type Record struct {
	Hostname string `json:"hostname"`
	// Failures counts the deployments that failed, Last is when the last one did.
	Failures int       `json:"failures"`
	Last     time.Time `json:"last"`
	// By names the failure that was counted last, so that one is not counted twice after a crash.
	By string `json:"by"`
	// Image is what could not be deployed.
	Image string `json:"image"`
	// Quarantined is set when the machine is not to be taken until somebody ends that; Shared, when MAAS has the tag on it.
	Quarantined bool `json:"quarantined,omitempty"`
	Shared      bool `json:"shared,omitempty"`
}

// Release says how a person ends the quarantine of a machine.
func Release(infra *infrav1.MaasCluster, systemID string, shared bool) string {
	if shared {
		return fmt.Sprintf("maas $ADMIN tag update-nodes %s remove=%s", Tag, systemID)
	}
	return Records.Forget(infra, systemID)
}
