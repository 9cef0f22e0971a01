// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/upsert"
)

// PatchControlPlane patches the HostedControlPlane if it exists.
func (s *Scope) PatchControlPlane(ctx context.Context, c client.Client, mutate func()) error {
	if s.HCP == nil {
		return nil
	}
	return client.IgnoreNotFound(upsert.Patch(ctx, c, s.HCP, mutate))
}

// PauseMachines pauses or resumes the Cluster API Cluster if it exists.
func (s *Scope) PauseMachines(ctx context.Context, c client.Client, paused bool) error {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Spec.InfraID}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("reading Cluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	if ptr.Deref(cluster.Spec.Paused, false) == paused {
		return nil
	}
	return client.IgnoreNotFound(upsert.Patch(ctx, c, cluster, func() { cluster.Spec.Paused = ptr.To(paused) }))
}
