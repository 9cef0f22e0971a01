// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/upsert"
)

// Record is the record of a HostedCluster in the namespace of its control plane. It contains everything that a deletion
// needs, and no secrets.
type Record struct {
	// Namespace is the UID of the namespace. A namespace that was restored from a backup has a different UID.
	Namespace types.UID `json:"namespace"`
	// Cluster is the UID of the HostedCluster.
	Cluster  types.UID            `json:"cluster"`
	InfraID  string               `json:"infraID"`
	Platform hyperv1.PlatformSpec `json:"platform"`
}

// markServed records in the namespace which HostedCluster it serves.
func (r Creator) markServed(ctx context.Context, s *cluster.Scope, namespace *corev1.Namespace) error {
	raw, err := json.Marshal(Record{Namespace: namespace.UID, Cluster: s.HC.UID, InfraID: s.HC.Spec.InfraID,
		Platform: s.HC.Spec.Platform})
	if err != nil {
		return fmt.Errorf("recording HostedCluster %s in namespace %s: %w", s.Key(), s.Namespace, err)
	}
	return upsert.Patch(ctx, r.Client, namespace, func() {
		cluster.Annotate(namespace, hyperv1.ServedClusterAnnotation, string(raw))
		delete(namespace.Annotations, hyperv1.OrphanedSinceAnnotation)
	})
}

// ServedIn reads the record of a namespace. proven reports that the operator wrote it for exactly this namespace.
func ServedIn(namespace *corev1.Namespace) (record Record, proven bool) {
	if err := json.Unmarshal([]byte(namespace.Annotations[hyperv1.ServedClusterAnnotation]), &record); err != nil {
		return Record{}, false
	}
	return record, record.Cluster != "" && record.Namespace != "" && record.Namespace == namespace.UID
}
