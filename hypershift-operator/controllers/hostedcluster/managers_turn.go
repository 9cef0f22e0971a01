// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/turns"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/phase"
)

// mostWakes bounds the control planes that are woken and not reconciled yet. One that is not woken tries again later.
const mostWakes = 1024

// limitTurns creates the turns of control planes, and returns the source of events for those that get one.
func (r *Reconciler) limitTurns() source.Source {
	woken := make(chan event.GenericEvent, mostWakes)
	r.turns = turns.New(r.Settings.ControlPlaneRollouts, r.Clock, func(name types.NamespacedName) {
		hc := &hyperv1.HostedCluster{}
		hc.Namespace, hc.Name = name.Namespace, name.Name
		select {
		case woken <- event.GenericEvent{Object: hc}:
		default:
		}
	})
	return source.Channel(woken, &handler.EnqueueRequestForObject{})
}

// awaitTurn delays the update of the control-plane-operator after an upgrade of this operator, until few enough other
// control planes change. A control plane that is created or changes its release does not wait: it changes anyway, and
// an earlier operator may not know the release. Neither does one whose operator its user chooses.
func (r *Reconciler) awaitTurn(ctx context.Context, s *scope) (ctrl.Result, error) {
	running, err := r.runningControlPlaneOperator(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := r.controlPlaneOperatorImage(s)
	ours := wanted == r.Settings.OperatorImage || wanted == r.Settings.ControlPlaneOperatorImage
	switch {
	case running == wanted:
		return r.endTurn(ctx, s)
	case running == "" || wanted == "" || !ours || s.course().reached != s.Release.Version() || r.turns.Take(s.Key()):
		return phase.Done()
	}
	s.waitsForTurn = r.turns.Most()
	return ctrl.Result{RequeueAfter: turns.Retry}, phase.ErrStop
}

// endTurn ends the cluster's turn when all components of its control plane have been complete for a while.
func (r *Reconciler) endTurn(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !r.turns.Holds(s.Key()) {
		return phase.Done()
	}
	components := &hyperv1.ControlPlaneComponentList{}
	if err := r.LiveReader.List(ctx, components, client.InNamespace(s.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the ControlPlaneComponents in namespace %s: %w", s.Namespace, err)
	}
	complete := true
	for i := range components.Items {
		c := &components.Items[i]
		complete = complete && component.Done(c, c.Status.Version, s.HCP.Generation)
	}
	r.turns.Report(s.Key(), complete)
	return ctrl.Result{RequeueAfter: turns.Look}, nil
}

// runningControlPlaneOperator returns the image of the cluster's control-plane-operator; empty if there is none.
func (r *Reconciler) runningControlPlaneOperator(ctx context.Context, s *scope) (string, error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: s.Namespace, Name: controlPlaneOperatorName}
	if err := r.Client.Get(ctx, key, deployment); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return "", nil
		}
		return "", fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == controlPlaneOperatorName {
			return container.Image, nil
		}
	}
	return "", nil
}
