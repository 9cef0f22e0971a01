// SPDX-License-Identifier: Apache-2.0

// Package nodecount reports the number of the guest's nodes in the HostedControlPlane, which determines the size of the
// control plane.
package nodecount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/watch"
	"github.com/openshift/hypershift/support/phase"
)

const fieldOwner = client.FieldOwner("hosted-cluster-config-operator-nodecount")

// Reconciler counts nodes.
type Reconciler struct {
	// Guest lists Nodes.
	Guest client.Reader
	// Management reads the HostedControlPlane and writes its status.
	Management client.Client
	// ControlPlane names the HostedControlPlane.
	ControlPlane client.ObjectKey
}

// SetupWithManager watches the creation and deletion of Nodes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodecount").
		Watches(&corev1.Node{}, watch.One(r.ControlPlane), builder.WithPredicates(watch.ComingAndGoing())).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedControlPlane, *hyperv1.HostedControlPlane]{
		Client: r.Management, Observe: phase.Itself[*hyperv1.HostedControlPlane],
		Phases: func(*hyperv1.HostedControlPlane) []phase.Phase[*hyperv1.HostedControlPlane] {
			return []phase.Phase[*hyperv1.HostedControlPlane]{{Name: "node count", Run: r.count}}
		},
	}.Reconcile(ctx, req)
}

func (r *Reconciler) count(ctx context.Context, hcp *hyperv1.HostedControlPlane) (ctrl.Result, error) {
	nodes := &corev1.NodeList{}
	if err := r.Guest.List(ctx, nodes); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Nodes: %w", err)
	}
	count := len(nodes.Items)
	if hcp.Status.NodeCount != nil && *hcp.Status.NodeCount == count {
		return ctrl.Result{}, nil
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": hcp.Name, "namespace": hcp.Namespace},
		"status":   map[string]any{"nodeCount": int64(count)},
	}}
	patch.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
	if err := r.Management.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), fieldOwner, client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the node count of HostedControlPlane %s: %w", hcp.Name, err)
	}
	return ctrl.Result{}, nil
}
