// SPDX-License-Identifier: Apache-2.0

// Package quarantine remembers on a MaasCluster, where it outlives the process, on which machines of MAAS deployments failed.
//
//	failure ─> record on the MaasCluster ─> set aside ─> n failures, and the image runs elsewhere ─> quarantine
//	                                                     with the key of an administrator: a tag that every provider heeds
package quarantine

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// Tag is that of a machine that no provider takes. Whoever takes it off in MAAS ends the quarantine.
const Tag = "hypershift-quarantine"

// AfterAnnotation of a MaasCluster overrules, for its machines, after how many failed deployments one is put into quarantine; 0 means
// never.
const AfterAnnotation = "infrastructure.cluster.x-k8s.io/quarantine-after"

// prefix starts the annotation of a MaasCluster about a machine; its system id follows.
const prefix = "failed-machine.infrastructure.cluster.x-k8s.io/"

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

// Of returns the records of a MaasCluster by system id; one that a person broke, and a nil MaasCluster, have none.
func Of(infra *infrav1.MaasCluster) map[string]Record {
	records := map[string]Record{}
	if infra == nil {
		return records
	}
	for key, text := range infra.Annotations {
		var record Record
		if id, ok := strings.CutPrefix(key, prefix); ok && json.Unmarshal([]byte(text), &record) == nil {
			records[id] = record
		}
	}
	return records
}

// Set writes a record.
func Set(infra *infrav1.MaasCluster, systemID string, record Record) error {
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding the failures of machine %s: %w", systemID, err)
	}
	if infra.Annotations == nil {
		infra.Annotations = map[string]string{}
	}
	infra.Annotations[prefix+systemID] = string(text)
	return nil
}

// Remove takes a record away.
func Remove(infra *infrav1.MaasCluster, systemID string) { delete(infra.Annotations, prefix+systemID) }

// Release says how a person ends the quarantine of a machine.
func Release(infra *infrav1.MaasCluster, systemID string, shared bool) string {
	if shared {
		return fmt.Sprintf("maas $ADMIN tag update-nodes %s remove=%s", Tag, systemID)
	}
	return fmt.Sprintf("kubectl annotate maascluster -n %s %s %s%s-", infra.Namespace, infra.Name, prefix, systemID)
}
