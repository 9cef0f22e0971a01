// SPDX-License-Identifier: Apache-2.0

package cluster

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

// SetupWithManager registers the reconciler for MaasClusters, their Clusters and their control plane machines.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	gvk := infrav1.GroupVersion.WithKind("MaasCluster")
	err := ctrl.NewControllerManagedBy(mgr).
		Named("maascluster").
		For(&infrav1.MaasCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(ctx, gvk, mgr.GetClient(), &infrav1.MaasCluster{}))).
		Watches(&infrav1.MaasMachine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine)).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the MaasCluster controller: %w", err)
	}
	return nil
}

// ofMachine returns a request for the MaasCluster whose DNS name depends on a control plane machine, or whose deletion
// waits for a machine.
func (r *Reconciler) ofMachine(ctx context.Context, machine client.Object) []reconcile.Request {
	_, controlPlane := machine.GetLabels()[clusterv1.MachineControlPlaneLabel]
	if !controlPlane && machine.GetDeletionTimestamp().IsZero() {
		return nil
	}
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: machine.GetNamespace(), Name: machine.GetLabels()[clusterv1.ClusterNameLabel]}
	if err := r.Client.Get(ctx, key, cluster); err != nil || cluster.Spec.InfrastructureRef.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: cluster.Spec.InfrastructureRef.Name}}}
}
