// SPDX-License-Identifier: Apache-2.0

// Package workloads rolls out the components that run in the guest, on its nodes.
package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/guestcomponents"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// resync is the interval of reconciles for changes that no watch reports, such as a pod whose image cannot be pulled.
const resync = time.Minute

// Reconciler rolls out the components of one guest and reports each in a ControlPlaneComponent of the hosted namespace.
type Reconciler struct {
	// Management reads the hosted namespace and writes ControlPlaneComponents.
	Management client.Client
	// Guest is the cluster in which the components run.
	Guest *component.Guest
	// Releases reads the release payload.
	Releases releaseinfo.Provider
	// Clock provides the time to check whether a pause has ended.
	Clock clock.PassiveClock
	// OperateOnReleaseImage restricts the operator to control planes of this release image; empty means any.
	OperateOnReleaseImage string
}

// Reconcile implements reconcile.Reconciler. The request names the HostedControlPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedControlPlane, *component.Scope]{
		Client: r.Management, Observe: r.observe,
		Pause: func(_ context.Context, s *component.Scope) (pause.State, error) {
			return pause.Until(s.HCP.Spec.PausedUntil, r.Clock.Now()), nil
		},
		Phases: r.phases, Resync: func(*component.Scope) time.Duration { return resync },
	}.Reconcile(ctx, req)
}

func (r *Reconciler) observe(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*component.Scope, error) {
	if hcp.Status.ControlPlaneEndpoint.Host == "" || r.OperateOnReleaseImage != "" && r.OperateOnReleaseImage != hcp.Spec.ReleaseImage {
		return nil, phase.ErrStop
	}
	nodes, err := r.Guest.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return &component.Scope{Client: r.Management, Guest: r.Guest, GuestNodes: nodes, HCP: hcp, ControlPlaneVersion: controlPlaneVersion(hcp)}, nil
}

// phases returns one phase for each component, after the phase that reads their payload.
func (r *Reconciler) phases(*component.Scope) []phase.Phase[*component.Scope] {
	phases := []phase.Phase[*component.Scope]{{Name: "release payload", Critical: true, Run: r.readRelease}}
	for _, c := range guestcomponents.Kubernetes() {
		phases = append(phases, phase.Phase[*component.Scope]{Name: c.Name, Run: func(ctx context.Context, s *component.Scope) (ctrl.Result, error) {
			return ctrl.Result{}, c.Reconcile(ctx, s)
		}})
	}
	metricsAPI := func(ctx context.Context, s *component.Scope) (ctrl.Result, error) {
		return ctrl.Result{}, guestcomponents.ReconcileMetricsAPI(ctx, s)
	}
	return append(phases, phase.Phase[*component.Scope]{Name: "metrics API", Run: metricsAPI})
}

// controlPlaneVersion returns the version of the control plane if it has a separate release; otherwise empty.
func controlPlaneVersion(hcp *hyperv1.HostedControlPlane) string {
	if image := hcp.Spec.ControlPlaneReleaseImage; image == nil || *image == "" {
		return ""
	}
	return hcp.Status.ControlPlaneVersion.Desired.Version
}

func (r *Reconciler) readRelease(ctx context.Context, s *component.Scope) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.HCP.Namespace, Name: s.HCP.Spec.PullSecret.Name}
	if err := r.Management.Get(ctx, key, secret); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading pull secret %s: %w", key, err)
	}
	release, err := r.Releases.Lookup(ctx, s.HCP.Spec.ReleaseImage, secret.Data[corev1.DockerConfigJsonKey])
	if err != nil {
		return ctrl.Result{}, err
	}
	s.Version, s.Images = release.Version(), release
	return phase.Done()
}
