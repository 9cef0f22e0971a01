// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/upsert"
)

// servedRecord is the record of a HostedCluster in the namespace of its control plane. It contains everything that a
// deletion needs, and no secrets.
type servedRecord struct {
	// Namespace is the UID of the namespace. A namespace that was restored from a backup has a different UID.
	Namespace types.UID `json:"namespace"`
	// Cluster is the UID of the HostedCluster.
	Cluster  types.UID            `json:"cluster"`
	InfraID  string               `json:"infraID"`
	Platform hyperv1.PlatformSpec `json:"platform"`
}

// markServed records in the namespace which HostedCluster it serves.
func (r *Reconciler) markServed(ctx context.Context, s *scope, namespace *corev1.Namespace) error {
	raw, err := json.Marshal(servedRecord{Namespace: namespace.UID, Cluster: s.hc.UID, InfraID: s.hc.Spec.InfraID,
		Platform: s.hc.Spec.Platform})
	if err != nil {
		return fmt.Errorf("recording HostedCluster %s in namespace %s: %w", s.key(), s.namespace, err)
	}
	return upsert.Patch(ctx, r.Client, namespace, func() {
		annotate(namespace, hyperv1.ServedClusterAnnotation, string(raw))
		delete(namespace.Annotations, hyperv1.OrphanedSinceAnnotation)
	})
}

// servedIn reads the record of a namespace. proven reports that the operator wrote it for exactly this namespace.
func servedIn(namespace *corev1.Namespace) (record servedRecord, proven bool) {
	if err := json.Unmarshal([]byte(namespace.Annotations[hyperv1.ServedClusterAnnotation]), &record); err != nil {
		return servedRecord{}, false
	}
	return record, record.Cluster != "" && record.Namespace != "" && record.Namespace == namespace.UID
}

// missing reconstructs a HostedCluster that is gone, as far as its deletion needs it. An administrator may request the
// deletion of a namespace without a record; the Cluster in it then provides the data.
func (r *Reconciler) missing(ctx context.Context, key client.ObjectKey,
	namespace *corev1.Namespace) (*hyperv1.HostedCluster, error) {
	record, _ := servedIn(namespace)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
		UID: record.Cluster}}
	hc.Spec.InfraID, hc.Spec.Platform = record.InfraID, record.Platform
	if record.Platform.Type == "" {
		if err := r.guess(ctx, hc, namespace.Name); err != nil {
			return nil, err
		}
	}
	plugin, _ := r.Platforms.For(hc.Spec.Platform.Type)
	if publisher, ok := plugin.(platform.IssuerPublisher); ok {
		// Assume that the issuer's finalizer was set: documents of the issuer may be published.
		hc.Finalizers = []string{publisher.IssuerFinalizer()}
	}
	return hc, nil
}

// guess sets the infrastructure ID and platform of a HostedCluster from the Cluster in its namespace. Without a
// Cluster, both stay empty.
func (r *Reconciler) guess(ctx context.Context, hc *hyperv1.HostedCluster, namespace string) error {
	found := &clusterv1.ClusterList{}
	if err := r.LiveReader.List(ctx, found, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing Clusters of namespace %s: %w", namespace, err)
	}
	if len(found.Items) != 1 {
		return nil
	}
	hc.Spec.InfraID = found.Items[0].Name
	kind := strings.ToLower(strings.TrimSuffix(found.Items[0].Spec.InfrastructureRef.Kind, "Cluster"))
	for _, platformType := range platforms.Known() {
		if strings.ToLower(string(platformType)) == kind {
			hc.Spec.Platform.Type = platformType
		}
	}
	return nil
}
