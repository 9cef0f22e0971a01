// SPDX-License-Identifier: Apache-2.0

// Package quarantine records on a MaasCluster the MAAS machines on which deployments failed. The records outlive the
// process.
//
//	failure ─> record on the MaasCluster ─> set aside ─> n failures, and the image runs elsewhere ─> quarantine
//	                                                     with the API key of an administrator: a tag that every provider honors
package quarantine

import (
	"fmt"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
)

// Tag is the MAAS tag of a machine that no provider allocates. Removing the tag in MAAS ends the quarantine.
const Tag = "hypershift-quarantine"

// AfterAnnotation, on a MaasCluster, overrides the number of failed deployments after which a machine of the cluster is
// quarantined; 0 means never.
const AfterAnnotation = "infrastructure.cluster.x-k8s.io/quarantine-after"

// Records accesses the records of a MaasCluster. An invalid record is ignored.
var Records = record.Kind[Record]{Prefix: "failed-machine.infrastructure.cluster.x-k8s.io/"}

// Record describes a machine on which deployments of a cluster failed.
type Record struct {
	Hostname string `json:"hostname"`
	// Failures is the number of failed deployments, Last is the time of the last one.
	Failures int       `json:"failures"`
	Last     time.Time `json:"last"`
	// By identifies the last counted failure, so that it is not counted twice after a crash.
	By string `json:"by"`
	// Image is the image whose deployment failed.
	Image string `json:"image"`
	// Quarantined is true if the machine must not be allocated until an administrator ends the quarantine. Shared is true
	// if the machine has the tag in MAAS.
	Quarantined bool `json:"quarantined,omitempty"`
	Shared      bool `json:"shared,omitempty"`
}

// Release returns the command that ends the quarantine of a machine.
func Release(infra *infrav1.MaasCluster, systemID string, shared bool) string {
	if shared {
		return fmt.Sprintf("maas $ADMIN tag update-nodes %s remove=%s", Tag, systemID)
	}
	return Records.Forget(infra, systemID)
}
