// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// reconcileCAPICluster creates the platform's infrastructure cluster and the Cluster API Cluster that links it to the
// control plane.
func (r *Reconciler) reconcileCAPICluster(ctx context.Context, s *scope) (ctrl.Result, error) {
	infra := s.Platform.InfraCluster(s.ForPlatform(r.Settings.OperatorImage))
	if infra == nil {
		return ctrl.Result{}, nil
	}
	_, err := upsert.Object(ctx, r.Client, infra.Object, func() error {
		s.Own(infra.Object)
		return infra.Mutate()
	})
	if err == nil && infra.MutateStatus != nil {
		err = upsert.Status(ctx, r.Client, infra.Object, infra.MutateStatus)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	ref, err := r.contractRef(infra.Object)
	if err != nil {
		return ctrl.Result{}, err
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Spec.InfraID}}
	_, err = upsert.Object(ctx, r.Client, cluster, func() error {
		s.Own(cluster)
		cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: hyperv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: s.HC.Name,
		}
		cluster.Spec.InfrastructureRef = ref
		// Cluster API copies the endpoint from the infrastructure cluster only once.
		if endpoint := s.HCP.Status.ControlPlaneEndpoint; endpoint.Host != "" && cluster.Spec.ControlPlaneEndpoint.Host != "" {
			cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: endpoint.Host, Port: endpoint.Port}
		}
		if cluster.Spec.Paused != nil {
			cluster.Spec.Paused = ptr.To(false)
		}
		return nil
	})
	return ctrl.Result{}, err
}

func (r *Reconciler) contractRef(obj client.Object) (clusterv1.ContractVersionedObjectReference, error) {
	gvk, err := apiutil.GVKForObject(obj, r.Client.Scheme())
	if err != nil {
		return clusterv1.ContractVersionedObjectReference{}, fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	return clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: obj.GetName()}, nil
}
