// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/namespace"
)

// reconciler is a phase that needs only what all phases share, and its own inputs.
type reconciler interface {
	Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error)
}

// shared runs such a phase.
func shared(p reconciler) func(context.Context, *scope) (ctrl.Result, error) {
	return func(ctx context.Context, s *scope) (ctrl.Result, error) { return p.Reconcile(ctx, s.Scope) }
}

// reconcileNamespace creates the namespace of the control plane.
func (r *Reconciler) reconcileNamespace(ctx context.Context, s *scope) (_ ctrl.Result, err error) {
	s.securityUID, err = namespace.Creator{
		Client: r.Client, LiveReader: r.LiveReader, Monitored: r.Settings.PlatformMonitoring, Identities: &r.identities,
	}.Reconcile(ctx, s.Scope)
	return ctrl.Result{}, err
}

// refuseNamespace is the only phase for a cluster whose namespace belongs to another owner. It neither changes nor
// reports anything in that namespace.
func refuseNamespace(_ context.Context, s *scope) (ctrl.Result, error) {
	s.Reject(hyperv1.ValidHostedClusterConfiguration, hyperv1.NamespaceNotOwnedReason, s.Refused)
	return ctrl.Result{}, errors.New(s.Refused)
}

func (r *Reconciler) podSecurity(s *scope) namespace.PodSecurity {
	return namespace.PodSecurity{Client: r.Client, Loosest: r.Settings.LoosestPodSecurity, Able: r.abilities(s)}
}

func (r *Reconciler) networkPolicies(s *scope) namespace.NetworkPolicies {
	return namespace.NetworkPolicies{
		Client: r.Client, LiveReader: r.LiveReader, Able: r.abilities(s),
		EgressBlocks: r.Settings.EgressBlocks, DNS: r.Settings.DNS, RefuseNodes: r.Settings.RefuseNodes,
	}
}

// abilities returns a function that reports whether the control-plane-operator has an ability, according to a label of
// its image. This product's operator has all abilities. An annotation of the cluster can add an ability, but not remove
// one.
func (r *Reconciler) abilities(s *scope) func(ctx context.Context, ability string) (bool, error) {
	return func(ctx context.Context, ability string) (bool, error) {
		said := strings.Split(s.HC.Annotations[hyperv1.ControlPlaneOperatorImageLabelsAnnotation], ",")
		if !s.Distribution().OwnOperators || slices.Contains(said, ability+"=true") {
			return true, nil
		}
		image := r.controlPlaneOperatorImage(s)
		labels, err := r.Releases.Labels(ctx, image, s.registryAccess())
		if err != nil {
			return false, fmt.Errorf("finding out what %s is able to do: %w", image, err)
		}
		return labels[ability] == "true", nil
	}
}
