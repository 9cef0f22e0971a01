// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
)

// SetupWithManager registers the reconciler for MaasMachines, their Machines and their Clusters.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.Default()
	gvk := infrav1.GroupVersion.WithKind("MaasMachine")
	err := ctrl.NewControllerManagedBy(mgr).
		Named("maasmachine").
		For(&infrav1.MaasMachine{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(util.MachineToInfrastructureMapFunc(gvk))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster)).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the MaasMachine controller: %w", err)
	}
	return nil
}

// ofCluster returns requests for the MaasMachines of a Cluster: they may wait for its infrastructure, or be paused with
// it.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := &infrav1.MaasMachineList{}
	err := r.Client.List(ctx, list, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the MaasMachines of a Cluster", "Cluster", client.ObjectKeyFromObject(cluster))
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
