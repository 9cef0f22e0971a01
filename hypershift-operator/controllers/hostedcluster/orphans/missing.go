// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/namespace"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/platforms"
)

// missing reconstructs a HostedCluster that is gone, as far as its deletion needs it. An administrator may request the
// deletion of a namespace without a record; the Cluster in it then provides the data.
func (j *Janitor) missing(ctx context.Context, key client.ObjectKey,
	space *corev1.Namespace) (*hyperv1.HostedCluster, error) {
	record, _ := namespace.ServedIn(space)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
		UID: record.Cluster}}
	hc.Spec.InfraID, hc.Spec.Platform = record.InfraID, record.Platform
	if record.Platform.Type == "" {
		if err := j.guess(ctx, hc, space.Name); err != nil {
			return nil, err
		}
	}
	plugin, _ := j.Platforms.For(hc.Spec.Platform.Type)
	if publisher, ok := plugin.(platform.IssuerPublisher); ok {
		// Assume that the issuer's finalizer was set: documents of the issuer may be published.
		hc.Finalizers = []string{publisher.IssuerFinalizer()}
	}
	return hc, nil
}

// guess sets the infrastructure ID and platform of a HostedCluster from the Cluster in its namespace. Without a
// Cluster, both stay empty.
func (j *Janitor) guess(ctx context.Context, hc *hyperv1.HostedCluster, namespace string) error {
	found := &clusterv1.ClusterList{}
	if err := j.LiveReader.List(ctx, found, client.InNamespace(namespace)); err != nil {
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
