// SPDX-License-Identifier: Apache-2.0

// Package resources applies what the guest cluster needs so that nodes can join and workloads can run. These are the
// API kinds and objects of config.openshift.io, the address of the API, and permissions. The workloads controller
// manages what runs there.
package resources

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
)

// resync is the interval of reconciles for changes that no watch reports, such as a published name that resolves to a
// new address.
const resync = time.Minute

// Reconciler manages the resources of one guest.
type Reconciler struct {
	// Management reads the hosted namespace and writes the status of the HostedControlPlane.
	Management client.Client
	// Guest accesses the guest cluster without a cache, so that it reads the current state.
	Guest client.Client
	// Lookup resolves a host name to addresses.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Clock provides the time to check whether a pause has ended.
	Clock clock.PassiveClock
	// OperateOnReleaseImage restricts the operator to control planes of this release image; empty means any.
	OperateOnReleaseImage string
}

// scope is the state of one reconcile.
type scope struct {
	hcp *hyperv1.HostedControlPlane
	// paused reports that the reconcile changes nothing, and therefore reports nothing.
	paused bool
}

// Reconcile implements reconcile.Reconciler. The request names the HostedControlPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedControlPlane, *scope]{
		Client: r.Management, Observe: r.observe,
		Pause: func(_ context.Context, s *scope) (pause.State, error) {
			state := pause.Until(s.hcp.Spec.PausedUntil, r.Clock.Now())
			s.paused = state.Paused
			return state, nil
		},
		Phases: r.phases, Report: r.report, Resync: func(*scope) time.Duration { return resync },
	}.Reconcile(ctx, req)
}

func (r *Reconciler) observe(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*scope, error) {
	if hcp.Status.ControlPlaneEndpoint.Host == "" {
		return nil, phase.ErrStop
	}
	if r.OperateOnReleaseImage != "" && r.OperateOnReleaseImage != hcp.Spec.ReleaseImage {
		ctrl.LoggerFrom(ctx).Info("Leaving the guest to the operator of its own release", "release", hcp.Spec.ReleaseImage)
		return nil, phase.ErrStop
	}
	return &scope{hcp: hcp}, nil
}

func (r *Reconciler) phases(*scope) []phase.Phase[*scope] {
	run := func(name string, do func(context.Context, *scope) error) phase.Phase[*scope] {
		return phase.Phase[*scope]{Name: name, Run: func(ctx context.Context, s *scope) (ctrl.Result, error) {
			return ctrl.Result{}, do(ctx, s)
		}}
	}
	return []phase.Phase[*scope]{
		run("rights", r.applyRights),
		run("bootstrap tokens", r.applyJoining),
		run("address of the API", r.applyEndpoints),
		run("API kinds", r.applyKinds),
		run("namespaces", r.applyNamespaces),
		run("pull secret and trust bundle", r.applyCopies),
		run("global configuration", r.applyConfig),
	}
}

// apply applies one object to the guest.
func (r *Reconciler) apply(ctx context.Context, obj client.Object) error {
	return component.ApplyGuest(ctx, r.Guest, obj)
}

// applyKinds installs the kinds of config.openshift.io.
func (r *Reconciler) applyKinds(ctx context.Context, _ *scope) error {
	kinds, err := crds.Load(crds.OpenShift)
	if err != nil {
		return err
	}
	for _, crd := range kinds {
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		if err := r.apply(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}
