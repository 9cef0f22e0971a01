// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/podranges"
)

// reportPodRanges reports that the pools of the cluster request more nodes than the cluster networks have pod ranges
// for. Machines are created nevertheless: the networks cannot change, but the number of nodes can.
func (r *Reconciler) reportPodRanges(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolPodRangesSufficientConditionType
	most, known := podranges.Nodes(&s.HC.Spec.Networking, !s.Distribution().OwnOperators)
	if !known {
		s.Clear(conditionType)
		return ctrl.Result{}, nil
	}
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(s.Pool.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing NodePools of namespace %s: %w", s.Pool.Namespace, err)
	}
	var nodes int64
	for i := range pools.Items {
		if pools.Items[i].Spec.ClusterName == s.HC.Name {
			nodes += mostNodes(&pools.Items[i])
		}
	}
	if nodes <= int64(most) {
		s.Clear(conditionType)
		return ctrl.Result{}, nil
	}
	s.SetFalse(conditionType, hyperv1.PodRangesExhaustedReason, fmt.Sprintf(
		"The pools of HostedCluster %s ask for up to %d nodes, but its cluster network %s has ranges for %d; further nodes do not become Ready; "+
			"reduce spec.replicas or spec.autoScaling.max, or create a cluster with a larger network or a longer hostPrefix",
		s.HC.Name, nodes, clusterNetworks(s.HC), most))
	return ctrl.Result{}, nil
}

// mostNodes returns the greatest number of nodes that a pool may have.
func mostNodes(pool *hyperv1.NodePool) int64 {
	if scaling := pool.Spec.AutoScaling; scaling != nil {
		return int64(scaling.Max)
	}
	return int64(ptr.Deref(pool.Spec.Replicas, 0))
}

func clusterNetworks(hc *hyperv1.HostedCluster) string {
	var networks []string
	for _, entry := range hc.Spec.Networking.ClusterNetwork {
		networks = append(networks, fmt.Sprintf("%s (a /%d for each node)", entry.CIDR.String(), podranges.HostPrefix(entry)))
	}
	return strings.Join(networks, ", ")
}

// siblings maps a pool to the other pools of its cluster, with which it shares the cluster networks.
func (r *Reconciler) siblings(ctx context.Context, obj client.Object) []reconcile.Request {
	pool, ok := obj.(*hyperv1.NodePool)
	if !ok {
		return nil
	}
	return r.pools(ctx, pool.Namespace, func(other *hyperv1.NodePool) bool {
		return other.Spec.ClusterName == pool.Spec.ClusterName && other.Name != pool.Name
	})
}
